-- Paths to values of a job.
local atoms = require "support.atoms"
local matching = require "support.matching"

local jobpath = matching.module("values.jobpath")

local function parse(...)
  return matching.try(jobpath.parse, ...)
end

describe("a path #once", function()
  local function value(path, argument)
    local compiled = assert(parse(path, "by"))
    local found = jobpath.value(compiled, { argument = argument })
    assert.are.equal(found, matching.inside("value", path, argument)[1])
    return found
  end

  it("is name, queue, priority, argument or leads into it", function()
    for _, path in ipairs({ "name", "queue", "priority", "argument" }) do
      assert.are.equal(path, parse(path, "by"))
    end
    assert.are.same({ "customer", "id" }, parse("argument.customer.id", "by"))
    assert.are.same({ "a.b", "c\\d" }, parse("argument.a\\.b.c\\\\d", "by"))
  end)

  describe("leads to", function()
    it("every scalar, as the same text however it is encoded", function()
      for _, scalar in ipairs(atoms.scalars) do
        for _, form in ipairs(scalar.forms) do
          assert.are.equal(scalar.text, value("argument", form))
          assert.are.equal(scalar.text, value("argument.a", "\129\161a" .. form))
          assert.are.equal(scalar.text, value("argument.1", "\146\192" .. form))
        end
      end
    end)
    it("what a naive reader finds in random values", function()
      math.randomseed(29)
      for _ = 1, 1500 do
        local tree = atoms.tree(3)
        local segments = atoms.path(tree)
        local found = atoms.follow(tree, segments)
        local expected = "n"
        if found then
          local is_number = found.bytes:find("^[\202\203]")
          expected = found.scalar and found.scalar.text or is_number and "dnan" or "m" .. found.bytes
        end
        for i, segment in ipairs(segments) do
          segments[i] = segment:gsub("[\\.]", "\\%0")
        end
        assert.are.equal(expected, value("argument." .. table.concat(segments, "."), tree.bytes))
      end
    end)
  end)
end)
