-- What is refused as a matcher, and how.
local atoms = require "support.atoms"
local matching = require "support.matching"
local msgpack = require "support.msgpack"

local compile, pack = matching.compile, msgpack.pack

describe("compiling a matcher #once", function()
  --- What a matcher is refused with, which must be the same inside Redis.
  local function refused(match)
    local program, problem = compile(match)
    assert.is_nil(program)
    return problem
  end

  it("refuses what is no map of conditions", function()
    local map = "INVALID match: expected a map of at least one condition, got "
    assert.are.equal("INVALID match: expected one MessagePack map, got no bytes", refused(""))
    for _, broken in ipairs(atoms.broken) do
      assert.are.equal("INVALID match: expected one ", refused(broken):sub(1, 28))
    end
    assert.are.equal(map .. "5", refused("\5"))
    assert.are.equal(map .. "nil", refused("\192"))
    assert.are.equal(map .. '"name"', refused(pack("name")))
    assert.are.equal(map .. "a list of 1", refused("\145\128"))
    assert.are.equal(map .. "an empty list", refused("\144"))
    assert.are.equal(map .. "an empty map", refused("\128"))
    assert.are.equal(map .. "binary data", refused("\196\1a"))
    assert.are.equal(map .. "an ext value", refused("\212\1a"))
    assert.are.equal(map .. "NaN", refused("\202\127\192\0\0"))
    assert.are.equal("INVALID match.not: expected a map of at least one condition, got an empty map",
      refused({ ["not"] = {} }))
    assert.are.equal("INVALID match.any[1]: expected a map of at least one condition, got 5",
      refused({ any = { { name = "a" }, 5 } }))
    assert.are.equal("INVALID match.not.not: expected a map of at least one condition, got true",
      refused({ ["not"] = { ["not"] = true } }))
  end)

  it("refuses paths that lead nowhere by themselves", function()
    for path, expected in pairs({
      ["argument."] = "a path without empty segments",
      ["argument..a"] = "a path without empty segments",
      ["argument.a."] = "a path without empty segments",
      ["argument.a..b"] = "a path without empty segments",
      ["argument.a\\b"] = "a path in which \\ stands only before a dot or another \\",
      ["argument.a\\"] = "a path in which \\ stands only before a dot or another \\",
      ["argument" .. (".a"):rep(33)] = "a path of at most 32 segments",
    }) do
      assert.are.equal("INVALID match." .. path .. ": expected " .. expected, refused({ [path] = 1 }))
    end
    assert.are.equal("INVALID match.argument." .. ("a"):rep(71) .. "...: expected a path of at most 1024 bytes",
      refused({ ["argument." .. ("a"):rep(1016)] = 1 }))
    assert.is_table(compile({ ["argument." .. ("a"):rep(1015)] = 1 }))
    assert.is_table(compile({ ["argument" .. (".a"):rep(32)] = 1 }))
    assert.are.equal("INVALID match.argument.?.: expected a path without empty segments",
      refused({ ["argument.\n."] = 1 }))
  end)

  describe("has limits:", function()
    local function conditions(count)
      local match = {}
      for i = 1, count do
        match["argument.k" .. i] = i
      end
      return match
    end
    local function levels(count)
      local match = { name = "a" }
      for i = 2, count do
        match = i % 2 == 0 and { ["not"] = match } or { any = { match } }
      end
      return match
    end
    local function numbers(first, last)
      local list = {}
      for i = first, last do
        list[#list + 1] = i
      end
      return list
    end

    it("100 conditions", function()
      assert.is_table(compile(conditions(100)))
      assert.are.equal("INVALID match: expected at most 100 conditions, got more", refused(conditions(101)))
      assert.are.equal("INVALID match: expected at most 100 conditions, got more", refused(conditions(2000)))
      assert.are.equal("INVALID match: expected at most 100 conditions, got more",
        refused({ any = { conditions(50), conditions(50), { name = "a" } } }))
      local branches = {}
      for i = 1, 100 do
        branches[i] = { ["argument.x"] = i }
      end
      assert.is_table(compile({ any = branches }))
      branches[101] = { name = "a" }
      assert.are.equal("INVALID match.any: expected a list of 1 to 100 matchers, got a list of 101",
        refused({ any = branches }))
    end)
    it("1000 operands", function()
      assert.is_table(compile({ ["argument.a"] = numbers(1, 1000) }))
      assert.are.equal("INVALID match.argument.a: expected a list of 1 to 1000 scalars, got a list of 1001",
        refused({ ["argument.a"] = numbers(1, 1001) }))
      assert.are.equal("INVALID match: expected at most 1000 operands, got more",
        refused({ ["argument.a"] = numbers(1, 600), ["argument.b"] = { ["in"] = numbers(1, 401) } }))
      assert.is_table(compile({ ["argument.a"] = numbers(1, 600), ["argument.b"] = { ["in"] = numbers(1, 400) } }))
    end)
    it("16 levels", function()
      assert.is_table(compile(levels(16)))
      local problem = refused(levels(17))
      assert.is_truthy(problem:find("^INVALID match%.[%w.%[%]]+: expected at most 16 levels of any and not, got more$"))
      assert.is_truthy(refused(levels(1000)):find(": expected at most 16 levels", 1, true))
    end)
    it("65536 bytes", function()
      local fitting = "\129\170argument.a\218\255\240" .. ("x"):rep(65520)
      assert.are.equal(65535, #fitting)
      assert.is_table(compile(fitting))
      assert.is_table(compile("\129\171argument.aa\218\255\240" .. ("x"):rep(65520)))
      assert.are.equal("INVALID match: expected at most 65536 bytes, got 65537",
        refused("\129\172argument.aaa\218\255\240" .. ("x"):rep(65520)))
      assert.is_truthy(refused(conditions(10000)):find("^INVALID match: expected at most 65536 bytes, got %d+$"))
    end)
    it("whatever is nested below a condition", function()
      local deep = ("\145"):rep(60000) .. "\192"
      assert.are.equal("INVALID match.argument.a[0]: expected "
        .. "a scalar: nil, a boolean, a number but NaN, text, binary data or ext, got a list of 1",
        refused("\129\170argument.a" .. deep))
      assert.are.equal("INVALID match: expected a map of at least one condition, got a list of 1", refused(deep))
      assert.are.equal("INVALID match.not.not: expected a map of at least one condition, got a list of 1",
        refused("\129\163not\129\163not" .. deep))
    end)
  end)

  it("shows keys short and without what would break a reply", function()
    local problem = refused({ ["argument.\r\n\0x"] = { lt = true } })
    assert.is_nil(problem:find("[%z\1-\31]"))
    assert.are.equal("INVALID match.argument.to?the?left.lt: expected a number or text, got true",
      refused({ ["argument.to the:left"] = { lt = true } }))
    assert.is_true(#refused({ ["argument." .. ("k"):rep(1000)] = { lt = true } }) < 200)
    assert.is_true(#refused({ [("k"):rep(60000)] = 1 }) < 300)
  end)

  it("never fails otherwise, whatever the bytes", function()
    math.randomseed(23)
    local match = pack({ name = { "a", "b*" }, ["argument.a.0"] = { lt = 5, ne = 3 }, tags = { ne = "x" },
      any = { { priority = { gt = 1 } }, { ["not"] = { queue = "q" } } } })
    for _ = 1, 3000 do
      local bytes = { match:byte(1, -1) }
      for _ = 1, math.random(3) do
        bytes[math.random(#bytes)] = math.random(0, 255)
      end
      local program, problem = matching.plain(string.char(unpack(bytes)))
      assert.is_true(program ~= nil or problem:sub(1, 13) == "INVALID match")
    end
    for _ = 1, 2000 do
      local program, problem = matching.plain(atoms.tree(4).bytes)
      assert.is_true(program ~= nil or problem:sub(1, 13) == "INVALID match")
    end
  end)
end)
