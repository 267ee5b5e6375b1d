-- Which jobs a compiled matcher holds for.
local atoms = require "support.atoms"
local matching = require "support.matching"
local msgpack = require "support.msgpack"

local raw, pack = msgpack.raw, msgpack.pack

local JOB = { name = "mail.send", queue = "mail", priority = 5, tags = { "fast", "vip" },
  argument = pack({ to = { country = "DE", zips = { "10115", 10117 } }, size = 52000, ["a.b"] = { ["c\\"] = true },
    none = raw("\192"), bin = msgpack.bin("DE"), big = raw("\207" .. ("\255"):rep(8)) }) }

local ANSWERS = { ["true"] = true, ["false"] = false }

local function holds(match, of)
  local facts = {}
  for fact, value in pairs(JOB) do
    facts[fact] = value
  end
  for fact, value in pairs(of or {}) do
    facts[fact] = value
  end
  return ANSWERS[matching.test(match, facts)[1]]
end

describe("a matcher #once", function()
  describe("on the name", function()
    it("takes a scalar as equal, or as a pattern", function()
      assert.is_true(holds({ name = "mail.send" }))
      assert.is_false(holds({ name = "mail" }))
      for pattern, is_fit in pairs({ ["*"] = true, ["mail.*"] = true, ["*send"] = true, ["m*.s*d"] = true,
        ["mail.send*"] = true, ["*a*a*"] = false, ["mail.*x"] = false, ["m*mail*"] = false, ["*mail.send.*"] = false,
        ["*mail.send*mail.send"] = false, ["m*l.send*d"] = false, ["mail?*"] = false, [".*"] = false }) do
        assert.are.equal(is_fit, holds({ name = pattern }), pattern)
        assert.are.equal(is_fit, holds({ name = { glob = pattern } }), pattern)
        assert.are.equal(is_fit, holds({ name = { "other", pattern } }), pattern)
      end
    end)
    it("takes a list as one of its names and patterns", function()
      assert.is_true(holds({ name = { "x", "mail.send" } }))
      assert.is_true(holds({ name = { "x*", "y", "*send" } }))
      assert.is_true(holds({ name = { "x*", "mail.send" } }))
      assert.is_false(holds({ name = { "x*", "y" } }))
      assert.is_false(holds({ name = { "x", "y" } }))
    end)
    it("orders bytewise, whatever the server's locale", function()
      assert.is_true(holds({ name = { ge = "mail", lt = "mail/" } }))
      assert.is_false(holds({ name = { lt = "Z" } }))
      assert.is_true(holds({ name = { lt = "\195\188" } }))
      assert.is_false(holds({ name = { gt = "mail.send" } }))
      assert.is_true(holds({ name = { le = "mail.send" } }))
    end)
  end)

  it("on the queue is as on the name", function()
    assert.is_true(holds({ queue = "mail" }))
    assert.is_true(holds({ queue = "m*" }))
    assert.is_false(holds({ queue = "mail.*" }))
    assert.is_true(holds({ queue = { "x", "*l" } }))
  end)

  it("on the priority compares numbers", function()
    assert.is_true(holds({ priority = 5 }))
    assert.is_true(holds({ priority = raw("\203\64\20\0\0\0\0\0\0") })) -- 5.0
    assert.is_false(holds({ priority = 6 }))
    assert.is_true(holds({ priority = { 1, 5 } }))
    assert.is_true(holds({ priority = { gt = 4.5, lt = 5.5 } }))
    assert.is_true(holds({ priority = { ge = 5, le = 5 } }))
    assert.is_false(holds({ priority = { lt = 5 } }))
    assert.is_true(holds({ priority = { gt = -3000000000 } }))
    assert.is_true(holds({ priority = { ne = 1.5 } }))
    assert.is_true(holds({ priority = 0 }, { priority = -0 }))
    assert.is_true(holds({ priority = { 0, 1 } }, { priority = -0 }))
    assert.is_true(holds({ priority = raw("\203\128\0\0\0\0\0\0\0") }, { priority = 0 }))
  end)

  describe("on the tags", function()
    it("holds if it holds for one of them", function()
      assert.is_true(holds({ tags = "vip" }))
      assert.is_false(holds({ tags = "vi" }))
      assert.is_true(holds({ tags = { "x", "vip" } }))
      assert.is_true(holds({ tags = { glob = "v*" } }))
      assert.is_false(holds({ tags = { glob = "v*" } }, { tags = {} }))
      assert.is_false(holds({ tags = "vip" }, { tags = {} }))
    end)
    it("asks one and the same tag for all", function()
      assert.is_true(holds({ tags = { gt = "g", glob = "*p" } }))
      assert.is_false(holds({ tags = { gt = "g", glob = "*t" } }))
    end)
    it("with ne holds if it is none of them", function()
      assert.is_false(holds({ tags = { ne = "vip" } }))
      assert.is_true(holds({ tags = { ne = "slow" } }))
      assert.is_true(holds({ tags = { ne = "slow" } }, { tags = {} }))
      assert.is_true(holds({ tags = { ne = "slow", glob = "v*" } }))
      assert.is_false(holds({ tags = { ne = "fast", glob = "v*" } }))
      assert.is_false(holds({ tags = { ne = "fast", ["in"] = { "fast", "vip" } } }))
    end)
    it("with exists asks whether there is one", function()
      assert.is_true(holds({ tags = { exists = true } }))
      assert.is_false(holds({ tags = { exists = true } }, { tags = {} }))
      assert.is_false(holds({ tags = { exists = false } }))
      assert.is_true(holds({ tags = { exists = false } }, { tags = {} }))
      assert.is_true(holds({ tags = { exists = true, ne = "slow" } }))
      assert.is_false(holds({ tags = { exists = true, ne = "vip" } }))
      assert.is_false(holds({ tags = { exists = true, ne = "slow" } }, { tags = {} }))
      assert.is_true(holds({ tags = { exists = false, ne = "slow" } }, { tags = {} }))
    end)
  end)

  describe("on the argument", function()
    it("follows paths into maps and lists", function()
      assert.is_true(holds({ ["argument.to.country"] = "DE" }))
      assert.is_true(holds({ ["argument.to.country"] = { "JP", "DE" } }))
      assert.is_true(holds({ ["argument.to.zips.0"] = "10115", ["argument.to.zips.1"] = 10117 }))
      assert.is_false(holds({ ["argument.to.zips.2"] = { exists = true } }))
      assert.is_true(holds({ ["argument.a\\.b.c\\\\"] = true }))
      assert.is_false(holds({ ["argument.a.b"] = { exists = true } }))
      assert.is_false(holds({ ["argument.size.x"] = { exists = true } }))
    end)
    it("takes nil for what is not there", function()
      for _, path in ipairs({ "argument.none", "argument.nothing" }) do
        assert.is_false(holds({ [path] = { exists = true } }))
        assert.is_true(holds({ [path] = { exists = false } }))
      end
    end)
    it("holds for what is not there with ne and exists false alone", function()
      assert.is_true(holds({ ["argument.x"] = { ne = 1 } }))
      assert.is_true(holds({ ["argument.x"] = { ne = 1, exists = false } }))
      for _, condition in ipairs({ 1, { 1, 2 }, { lt = 1 }, { le = "a" }, { gt = "" }, { ge = 0 }, { glob = "*" },
        { exists = true }, { ne = 1, lt = 5 }, { ne = 1, exists = true } }) do
        assert.is_false(holds({ ["argument.x"] = condition }))
      end
    end)
    it("takes binary data for text", function()
      assert.is_true(holds({ ["argument.bin"] = "DE" }))
      assert.is_true(holds({ ["argument.bin"] = msgpack.bin("DE") }))
      assert.is_true(holds({ ["argument.to.country"] = msgpack.bin("DE") }))
    end)
    it("takes maps and lists to equal nothing, though they are there", function()
      for _, path in ipairs({ "argument", "argument.to", "argument.to.zips" }) do
        assert.is_true(holds({ [path] = { exists = true } }))
        assert.is_true(holds({ [path] = { ne = 1 } }))
        assert.is_false(holds({ [path] = { ge = "" } }))
        assert.is_false(holds({ [path] = { glob = "*" } }))
        assert.is_false(holds({ [path] = { 1, "a" } }))
      end
    end)
    it("finds nothing in what is not one whole value, but the argument itself", function()
      for _, broken in ipairs(atoms.broken) do
        local of = { argument = broken }
        assert.is_true(holds({ argument = { exists = true } }, of))
        assert.is_true(holds({ argument = { ne = 1 } }, of))
        assert.is_false(holds({ argument = { 1, "a" } }, of))
        assert.is_false(holds({ argument = { ge = 0 } }, of))
        assert.is_false(holds({ ["argument.a"] = { exists = true } }, of))
        assert.is_true(holds({ ["argument.a"] = { exists = false } }, of))
        assert.is_true(holds({ ["argument.a"] = { ne = 1 } }, of))
      end
    end)
  end)

  describe("reads", function()
    local function check(what, path, value, argument, expected)
      it(what, function()
        assert.are.equal(expected, holds({ [path] = value }, { argument = argument }))
      end)
    end
    check("keys whose text stands in other places", "argument.a", 1, "\131\162aa\161a\162ba\162\161a\161a\1", true)
    check("keys whose text stands in many places", "argument.a", 1,
      "\138" .. ("\161b\161a"):rep(9) .. "\161a\1", true)
    check("keys within that are there outside too", "argument.x.a", 1, "\130\161a\2\161x\129\161a\1", true)
    check("keys of 32 bytes and more", "argument." .. ("k"):rep(40), 1, "\129\217\40" .. ("k"):rep(40) .. "\1", true)
    check("keys of 300 bytes", "argument." .. ("k"):rep(300), 1, "\129\218\1\44" .. ("k"):rep(300) .. "\1", true)
    check("a list as no map", "argument.a", { exists = true }, "\145\161a", false)
    check("integers from 2^63 on as positive", "argument.a", { lt = 0 }, "\129\161a\207" .. ("\255"):rep(8), false)
    check("negative integers", "argument.a", -1, "\129\161a\255", true)
    check("negative integers beside large ones", "argument.a", -1, "\130\161a\255\161b\207" .. ("\255"):rep(8), true)
    check("large integers", "argument.a", { ge = raw("\207\0\32\0\0\0\0\0\1") }, "\129\161a\207\0\32\0\0\0\0\0\1", true)
    check("infinity", "argument.a", { gt = 1e308 }, "\129\161a\203\127\240\0\0\0\0\0\0", true)
    check("NaN as neither less", "argument.a", { lt = 0 }, "\129\161a\203\127\248\0\0\0\0\0\0", false)
    check("NaN as there", "argument.a", { exists = true }, "\129\161a\203\127\248\0\0\0\0\0\0", true)
    check("NaN as not equal", "argument.a", { ne = 0 }, "\129\161a\203\127\248\0\0\0\0\0\0", true)
    check("false", "argument.a", false, "\129\161a\194", true)
    check("ext beside", "argument.a", 1, "\130\161b\212\1x\161a\1", true)
    check("beside 1000 levels", "argument.a", 1, "\130\161b" .. ("\145"):rep(1000) .. "\192\161a\1", true)
    check("in large arguments", "argument.a", 1,
      "\130\161b\219\0\3\0\0" .. ("x"):rep(196608) .. "\161a\1", true)
  end)

  describe("compares", function()
    it("every scalar with every other", function()
      local blobs, of = {}, {}
      for _, scalar in ipairs(atoms.scalars) do
        for _, form in ipairs(scalar.forms) do
          blobs[#blobs + 1], of[#of + 1] = form, scalar
        end
      end
      for _, a in ipairs(atoms.scalars) do
        local number = math.abs(tonumber(a.text:sub(2)) or 0)
        local is_rounded = a.family == "number" and number >= 2 ^ 53 and number <= 2 ^ 64
        local orders = { eq = 0, ne = 0, lt = -1, le = -1, gt = 1, ge = 1 }
        orders.eq, orders.ne = not is_rounded and 0 or nil, not is_rounded and 0 or nil
        for operator, order in pairs(a.family and orders or {}) do
          local match = "\129\168argument\129\162" .. operator .. a.forms[#a.forms]
          local answers = matching.test(match, { argument = blobs[1] }, unpack(blobs, 2))
          for i, b in ipairs(of) do
            local is_comparable = b.family == a.family
            local is_expected = is_comparable and (b.text == a.text and (operator == "eq" or operator:sub(2) == "e")
              or order ~= 0 and b.text ~= a.text and (b.rank - a.rank) * order > 0)
            if operator == "ne" then
              is_expected = b.text ~= a.text
            end
            if answers[i] ~= tostring(is_expected) then
              error(a.text .. " " .. operator .. " " .. b.text)
            end
          end
        end
      end
    end)
    it("patterns as a plain reading does", function()
      local function fits(pattern, text)
        if pattern == "" then
          return text == ""
        elseif pattern:sub(1, 1) == "*" then
          return fits(pattern:sub(2), text) or text ~= "" and fits(pattern, text:sub(2))
        end
        return text ~= "" and pattern:byte() == text:byte() and fits(pattern:sub(2), text:sub(2))
      end
      math.randomseed(13)
      local characters = { "a", "b", "*", "*", "\0", "%", ".", "\254" }
      local function text(most)
        local parts = {}
        for i = 1, math.random(0, 7) do
          parts[i] = characters[math.random(most) % #characters + 1]
        end
        return table.concat(parts)
      end
      for _ = 1, 200 do
        local pattern, values, blobs = text(100), {}, {}
        for i = 1, 20 do
          values[i] = text(100)
          blobs[i] = pack(values[i])
        end
        local answers = matching.test({ argument = { glob = pattern } }, { argument = blobs[1] }, unpack(blobs, 2))
        for i, value in ipairs(values) do
          if answers[i] ~= tostring(fits(pattern, value)) then
            error(("%q and %q"):format(pattern, value))
          end
        end
      end
    end)
  end)

  describe("combines", function()
    it("conditions of which all must hold", function()
      assert.is_true(holds({ name = "mail.*", queue = "mail", ["argument.size"] = { gt = 1 } }))
      assert.is_false(holds({ name = "mail.*", queue = "mail", ["argument.size"] = { gt = 1e6 } }))
    end)
    it("any and not", function()
      assert.is_true(holds({ any = { { name = "x" }, { queue = "mail" } } }))
      assert.is_false(holds({ any = { { name = "x" }, { queue = "y" } } }))
      assert.is_true(holds({ any = { { name = "x" }, { name = "mail.send", ["argument.size"] = 52000 } } }))
      assert.is_false(holds({ any = { { name = "x" }, { name = "mail.send", ["argument.size"] = 5 } } }))
      assert.is_true(holds({ ["not"] = { name = "x" } }))
      assert.is_false(holds({ ["not"] = { name = "mail.send" } }))
      assert.is_true(holds({ ["not"] = { name = "mail.send", queue = "x" } }))
      assert.is_true(holds({ ["not"] = { ["not"] = { name = "mail.send" } } }))
      assert.is_true(holds({ ["not"] = { any = { { name = "x" }, { name = "y" } } } }))
    end)
  end)

  describe("says of what is unknown", function()
    local function of(match, facts)
      return ANSWERS[matching.test(match, facts)[1]]
    end

    it("no, when what is known does not hold", function()
      assert.is_false(of({ name = "a", ["argument.a"] = 1 }, { name = "b" }))
      assert.is_false(of({ ["not"] = { any = { { name = "a" }, { ["argument.a"] = 1 } } } }, { name = "a" }))
    end)
    it("yes, when what is known is enough", function()
      assert.is_true(of({ any = { { ["argument.a"] = 1 }, { name = "a" } } }, { name = "a" }))
      assert.is_true(of({ ["not"] = { name = "a", ["argument.a"] = 1 } }, { name = "b" }))
    end)
  end)
end)
