-- What is refused as a matcher, and how.
local matching = require "support.matching"
local msgpack = require "support.msgpack"

local compile, pack, raw = matching.compile, msgpack.pack, msgpack.raw

describe("compiling a matcher #once", function()
  --- What a matcher is refused with.
  local function refused(match)
    local program, problem = compile(match)
    assert.is_nil(program)
    return problem
  end

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
      assert.is_string(compile(conditions(100)))
      assert.are.equal("INVALID match: expected at most 100 conditions, got more", refused(conditions(101)))
      assert.are.equal("INVALID match: expected at most 100 conditions, got more", refused(conditions(2000)))
      assert.are.equal("INVALID match: expected at most 100 conditions, got more",
        refused({ any = { conditions(50), conditions(50), { name = "a" } } }))
      local branches = {}
      for i = 1, 100 do
        branches[i] = { ["argument.x"] = i }
      end
      assert.is_string(compile({ any = branches }))
      branches[101] = { name = "a" }
      assert.are.equal("INVALID match.any: expected a list of 1 to 100 matchers, got a list of 101",
        refused({ any = branches }))
    end)
    it("numbers that are exact", function()
      assert.are.equal("INVALID match.argument.a: expected a boolean, a number within 2^53, or text, got "
        .. "about 9.0072e+15", refused({ ["argument.a"] = 9007199254740992 }))
      assert.is_string(compile({ ["argument.a"] = { -9007199254740991, 1e10, math.huge } }))
    end)
    it("1000 operands", function()
      assert.is_string(compile({ ["argument.a"] = numbers(1, 1000) }))
      assert.are.equal("INVALID match.argument.a: expected a list of 1 to 1000 scalars, got a list of 1001",
        refused({ ["argument.a"] = numbers(1, 1001) }))
      assert.are.equal("INVALID match: expected at most 1000 operands, got more",
        refused({ ["argument.a"] = numbers(1, 600), ["argument.b"] = { ["in"] = numbers(1, 401) } }))
      assert.is_string(compile({ ["argument.a"] = numbers(1, 600), ["argument.b"] = { ["in"] = numbers(1, 400) } }))
    end)
    it("5 levels", function()
      assert.is_string(compile(levels(5)))
      local problem = refused(levels(6))
      assert.is_truthy(problem:find("^INVALID match%.[%w.%[%]]+: expected at most 5 levels of any and not, got more$"))
      assert.is_truthy(refused(levels(1000)):find(": expected at most 5 levels", 1, true))
    end)
    it("65536 bytes", function()
      local fitting = "\129\170argument.a\218\255\240" .. ("x"):rep(65520)
      assert.are.equal(65535, #fitting)
      assert.is_string(compile(fitting))
      assert.is_string(compile("\129\171argument.aa\218\255\240" .. ("x"):rep(65520)))
      assert.are.equal("INVALID match: expected at most 65536 bytes, got 65537",
        refused("\129\172argument.aaa\218\255\240" .. ("x"):rep(65520)))
      assert.is_truthy(refused(conditions(10000)):find("^INVALID match: expected at most 65536 bytes, got %d+$"))
    end)
  end)

  it("refuses nil, which no value equals", function()
    local none = raw("\192")
    for _, condition in ipairs({ none, { 1, none }, { ne = none }, { ["in"] = { none } } }) do
      assert.is_truthy(refused({ ["argument.a"] = condition }):find("got nil$"))
    end
    assert.is_truthy(refused({ ["not"] = raw("\192") }):find("got nil$"))
  end)
  it("never fails otherwise, whatever the bytes", function()
    math.randomseed(23)
    local match = pack({ name = { "a", "b*" }, ["argument.a.0"] = { lt = 5, ne = 3 }, tags = { ne = "x" },
      any = { { priority = { gt = 1 } }, { ["not"] = { queue = "q" } } } })
    for _ = 1, 1000 do
      local bytes = { match:byte(1, -1) }
      for _ = 1, math.random(3) do
        bytes[math.random(#bytes)] = math.random(0, 255)
      end
      local program, problem = compile(string.char(unpack(bytes)))
      assert.is_true(program ~= nil or problem:sub(1, 13) == "INVALID match")
    end
  end)
end)
