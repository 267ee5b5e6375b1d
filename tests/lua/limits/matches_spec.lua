-- Which jobs a constraint matches, seen from what it holds.
local msgpack = require "support.msgpack"
local space = require "support.space"

local raw = msgpack.raw

describe("a constraint", function()
  local jq = space.each()

  -- A constraint that is closed holds what it matches, enqueued before and after.
  ---@param cases table[] {what, match, spec, argument, is_matched}
  local function matches(cases)
    for _, case in ipairs(cases) do
      local what, match, more, argument, is_matched = unpack(case, 1, 5)
      it(what .. (is_matched and " holds" or " does not hold"), function()
        local spec = space.with({ name = "mail.send" }, more)
        jq:constrain({ id = "c", rate = { limit = 1, period = 1000 }, concurrency = 1 }, { name = "another" })
        local before = jq:enqueue(spec, argument)
        jq:constrain({ id = "c", concurrency = 1 }, match)
        jq:hold("c", 1000)
        local after = jq:enqueue(spec, argument)
        assert.are.same(is_matched and {} or { before, after }, jq:start_ids("*"))
      end)
    end
  end

  describe("matches by name and queue:", function()
    matches({
      { "the name", { name = "mail.send" }, nil, nil, true },
      { "another name", { name = "mail.sen" }, nil, nil, false },
      { "a pattern", { name = "mail.*" }, nil, nil, true },
      { "a pattern within", { name = "*il.s*d" }, nil, nil, true },
      { "a pattern that does not fit", { name = "mail.*x" }, nil, nil, false },
      { "a pattern in a list", { name = { "x", "*.send" } }, nil, nil, true },
      { "a list of names", { name = { "x", "mail.send" } }, nil, nil, true },
      { "a list of other names", { name = { "x", "y" } }, nil, nil, false },
      { "eq with a star, which is no pattern there,", { name = { eq = "mail.*" } }, nil, nil, false },
      { "eq", { name = { eq = "mail.send" } }, nil, nil, true },
      { "in with a star, which is no pattern there,", { name = { ["in"] = { "mail.*" } } }, nil, nil, false },
      { "in", { name = { ["in"] = { "a", "mail.send" } } }, nil, nil, true },
      { "glob", { name = { glob = "mail*send" } }, nil, nil, true },
      { "glob of other characters", { name = { glob = "mail?send" } }, nil, nil, false },
      { "ne", { name = { ne = "mail.send" } }, nil, nil, false },
      { "ne of another", { name = { ne = "x" } }, nil, nil, true },
      { "an order of texts", { name = { ge = "mail", lt = "mail/" } }, nil, nil, true },
      { "an order of texts that leaves it out", { name = { gt = "mail.send" } }, nil, nil, false },
      { "exists", { name = { exists = true } }, nil, nil, true },
      { "the queue", { queue = "q" }, { queue = "q" }, nil, true },
      { "the queue that is the name", { queue = "mail.*" }, nil, nil, true },
      { "another queue", { queue = "mail.send" }, { queue = "q" }, nil, false },
      { "name and queue", { name = "mail.*", queue = "q" }, { queue = "q" }, nil, true },
      { "name and another queue", { name = "mail.*", queue = "q" }, { queue = "r" }, nil, false },
    })
  end)

  describe("matches by priority:", function()
    matches({
      { "a number", { priority = 0 }, nil, nil, true },
      { "the number as a float", { priority = raw("\203\192\8\0\0\0\0\0\0") }, { priority = -3 }, nil, true },
      { "another number", { priority = 1 }, nil, nil, false },
      { "a list", { priority = { 1, 2, 3 } }, { priority = 3 }, nil, true },
      { "less", { priority = { lt = 5 } }, { priority = 4 }, nil, true },
      { "not less", { priority = { lt = 5 } }, { priority = 5 }, nil, false },
      { "between", { priority = { gt = -5, le = 5 } }, { priority = 5 }, nil, true },
      { "not between", { priority = { gt = -5, le = 5 } }, { priority = -5 }, nil, false },
      { "all but one of a range", { priority = { ge = 1, ne = 3 } }, { priority = 3 }, nil, false },
      { "half a number as bound", { priority = { gt = 2.5 } }, { priority = 3 }, nil, true },
    })
  end)

  describe("matches by tags:", function()
    local red_and_big = { tags = { "red", "big" } }
    matches({
      { "one of them", { tags = "big" }, red_and_big, nil, true },
      { "another", { tags = "small" }, red_and_big, nil, false },
      { "any of a list", { tags = { "small", "red" } }, red_and_big, nil, true },
      { "a star, which is no pattern,", { tags = "*" }, red_and_big, nil, false },
      { "glob", { tags = { glob = "b*" } }, red_and_big, nil, true },
      { "eq and glob of one tag", { tags = { eq = "red", glob = "r*" } }, red_and_big, nil, true },
      { "ne of one that is there", { tags = { ne = "red" } }, red_and_big, nil, false },
      { "ne of one that is not there", { tags = { ne = "blue" } }, red_and_big, nil, true },
      { "ne without any tags", { tags = { ne = "blue" } }, nil, nil, true },
      { "exists", { tags = { exists = true } }, red_and_big, nil, true },
      { "exists without any tags", { tags = { exists = true } }, nil, nil, false },
      { "exists: false", { tags = { exists = false } }, red_and_big, nil, false },
      { "exists: false without any tags", { tags = { exists = false } }, nil, nil, true },
      { "not", { ["not"] = { tags = "blue" } }, red_and_big, nil, true },
    })
  end)

  describe("matches by argument:", function()
    local function arg(match, value)
      return { ["argument.v"] = match }, nil, { v = value }
    end
    local function case(what, match, value, is_matched)
      local full, _, argument = arg(match, value)
      return { what, full, nil, argument, is_matched }
    end
    local MOST = "\207\255\255\255\255\255\255\255\255"
    matches({
      case("equal text", "x", "x", true),
      case("text with a star, which is no pattern,", "x*", "xy", false),
      case("text with a star that is the same", "x*", "x*", true),
      case("an equal number", 5, 5, true),
      case("a number that is equal as a float", 5, raw("\203\64\20\0\0\0\0\0\0"), true),
      case("a number against its text", 5, "5", false),
      case("true", true, true, true),
      case("true against 1", true, 1, false),
      case("nil", raw("\192"), raw("\192"), true),
      case("nil against false", raw("\192"), false, false),
      case("2^64 - 1", raw(MOST), raw(MOST), true),
      case("2^64 - 1 against 2^64 - 2", raw(MOST), raw(MOST:sub(1, 8) .. "\254"), false),
      case("2^53 against 2^53 + 1", raw("\207\0\32\0\0\0\0\0\0"), raw("\207\0\32\0\0\0\0\0\1"), false),
      case("binary data", msgpack.bin("x"), msgpack.bin("x"), true),
      case("binary data against text", msgpack.bin("x"), "x", false),
      case("text against binary data", "x", msgpack.bin("x"), false),
      case("ext", raw("\212\5x"), raw("\199\1\5x"), true),
      case("ext of another type", raw("\212\5x"), raw("\212\6x"), false),
      case("a list", { "x", 5, true }, 5, true),
      case("a list without it", { "x", 5, true }, false, false),
      case("a map against a scalar", "x", { "x" }, false),
      case("less", { lt = 10 }, 9.5, true),
      case("less, of a text", { lt = 10 }, "9", false),
      case("less, of texts", { lt = "b" }, "a", true),
      case("less, bytewise", { lt = "a" }, "Z", true),
      case("less, of a longer text", { gt = "a" }, "aa", true),
      case("less, of 64 bits", { lt = raw(MOST) }, raw(MOST:sub(1, 8) .. "\254"), true),
      case("greater, of negative 64 bits", { gt = raw("\211\128\0\0\0\0\0\0\0") }, raw("\211\128\0\0\0\0\0\0\1"), true),
      case("less or equal", { le = 10 }, 10, true),
      case("NaN", { le = 10 }, msgpack.NAN, false),
      case("ne of NaN", { ne = 10 }, msgpack.NAN, true),
      case("a bound for true", { ge = 0 }, true, false),
      case("glob", { glob = "a*c" }, "abc", true),
      case("glob of a number", { glob = "*" }, 5, false),
      case("exists of nil", { exists = true }, raw("\192"), true),
      case("exists of a map", { exists = true }, { 1 }, true),
      case("exists: false of nil", { exists = false }, raw("\192"), false),
      case("ne of a map", { ne = 1 }, { 1 }, true),
      { "exists of nothing", { ["argument.w"] = { exists = true } }, nil, { v = 1 }, false },
      { "exists: false of nothing", { ["argument.w"] = { exists = false } }, nil, { v = 1 }, true },
      { "ne of nothing", { ["argument.w"] = { ne = 1 } }, nil, { v = 1 }, true },
      { "less than nothing", { ["argument.w"] = { lt = 1 } }, nil, { v = 1 }, false },
      { "nil of nothing", { ["argument.w"] = raw("\192") }, nil, { v = 1 }, false },
      { "not of nothing", { ["not"] = { ["argument.w"] = 1 } }, nil, { v = 1 }, true },
      { "a deep path", { ["argument.to.list.1.id"] = 7 }, nil, { to = { list = { 0, { id = 7 } } } }, true },
      { "an index beyond", { ["argument.list.2"] = { exists = true } }, nil, { list = { 0, 1 } }, false },
      { "an integer key", { ["argument.7"] = "x" }, nil, { [7] = "x", [9] = "y" }, true },
      { "a key with a dot", { ["argument.a\\.b"] = 1 }, nil, { ["a.b"] = 1 }, true },
      { "a key with a dot, not escaped", { ["argument.a.b"] = 1 }, nil, { ["a.b"] = 1 }, false },
      { "a key with a backslash", { ["argument.a\\\\b"] = 1 }, nil, { ["a\\b"] = 1 }, true },
      { "the argument itself", { argument = "x" }, nil, msgpack.pack("x"), true },
      { "an argument that is a map", { argument = "x" }, nil, { x = "x" }, false },
      { "an argument that is there", { argument = { exists = true } }, nil, "\192", true },
      { "a path into an argument that is no map", { ["argument.x"] = { exists = true } }, nil, msgpack.pack("x"),
        false },
      { "a path into bytes that are no value", { ["argument.0"] = { exists = true } }, nil, "\147\1\2", false },
      { "ne on bytes that are no value", { ["argument.0"] = { ne = 1 } }, nil, "\147\1\2", true },
      { "bytes behind the value", { ["argument.v"] = 1 }, nil, "\129\161v\1\1", false },
      { "binary data beside what is asked for", { ["argument.v"] = 1 }, nil, { b = msgpack.bin("x"), v = 1,
        e = raw("\212\5x") }, true },
    })
  end)

  describe("matches by all, any and not:", function()
    local v_is_5 = { ["argument.v"] = 5 }
    matches({
      { "all of several", { name = "mail.*", priority = 0, ["argument.v"] = 5 }, nil, { v = 5 }, true },
      { "all but one of several", { name = "mail.*", priority = 1, ["argument.v"] = 5 }, nil, { v = 5 }, false },
      { "one of any", { any = { { name = "x" }, v_is_5 } }, nil, { v = 5 }, true },
      { "none of any", { any = { { name = "x" }, v_is_5 } }, nil, { v = 6 }, false },
      { "any beside a condition that fails", { priority = 3, any = { { name = "mail.send" }, v_is_5 } }, nil, { v = 5 },
        false },
      { "not", { ["not"] = { name = "mail.send" } }, nil, nil, false },
      { "not of another", { ["not"] = { name = "x" } }, nil, nil, true },
      { "not of all, when one fails", { ["not"] = { name = "mail.send", priority = 3 } }, nil, nil, true },
      { "not within any", { any = { { ["not"] = v_is_5 }, { name = "x" } } }, nil, { v = 6 }, true },
      { "not of not", { ["not"] = { ["not"] = { name = "mail.send" } } }, nil, nil, true },
      { "any within any within not", { ["not"] = { any = { { any = { v_is_5 } } } } }, nil, { v = 5 }, false },
    })
    it("sixteen levels deep", function()
      local match = { name = "a" }
      for _ = 1, 15 do
        match = { any = { match } }
      end
      jq:constrain({ id = "c", concurrency = 1 }, match)
      jq:enqueue_all("a", "a", "b")
      assert.are.equal(2, #jq:start({ "a", "b" }))
    end)
    it("with 100 conditions", function()
      local any = {}
      for i = 1, 100 do
        any[i] = { ["argument.x" .. i] = 1 }
      end
      jq:constrain({ id = "c", concurrency = 1 }, { any = any })
      jq:enqueue_each("a", { x100 = 1 }, { x1 = 1 }, { x0 = 1 })
      assert.are.equal(2, #jq:start("a"))
    end)
    it("with a list of 1000 scalars", function()
      local list = {}
      for i = 1, 1000 do
        list[i] = "c" .. i
      end
      jq:constrain({ id = "c", concurrency = 1 }, { ["argument.v"] = list })
      jq:enqueue_each("a", { v = "c1" }, { v = "c1000" }, { v = "c1001" })
      assert.are.equal(2, #jq:start("a"))
    end)
  end)
end)
