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

  it("leads to an amount, if that is a number from 0 on", function()
    local function amount(bytes)
      return (jobpath.amount((parse("argument.a", "cost")), { argument = "\129\161a" .. bytes }))
    end
    for _, scalar in ipairs(atoms.scalars) do
      local number = scalar.family == "number" and tonumber(scalar.text:sub(2))
      for _, form in ipairs(scalar.forms) do
        assert.are.equal(number and number >= 0 and number < math.huge and number or nil, amount(form))
      end
    end
    for _, other in ipairs(atoms.others) do
      assert.is_nil(amount(other))
    end
    assert.is_nil(jobpath.amount((parse("argument.b", "cost")), { argument = "\129\161a\1" }))
    assert.is_nil(jobpath.amount((parse("argument.a", "cost")), { argument = "\129\161a\1\1" }))
    assert.are.equal(7, jobpath.amount("argument", { argument = "\7" }))
    assert.are.equal(7, jobpath.amount("priority", { priority = 7 }))
    assert.is_nil(jobpath.amount("priority", { priority = -7 }))
    assert.is_nil(jobpath.amount("name", { name = "7" }))
  end)
end)
