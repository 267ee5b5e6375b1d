-- Paths to values of a job.
local atoms = require "support.atoms"
local matching = require "support.matching"
local msgpack = require "support.msgpack"

describe("a path #once", function()
  local function value(path, argument)
    return matching.inside("value", path, argument)[1]
  end

  it("is name, queue, priority, argument or leads into it", function()
    for _, path in ipairs({ "name", "queue", "priority", "argument" }) do
      assert.are.equal(path, msgpack.unpack(matching.inside("parse", path)))
    end
    assert.are.same({ "customer", "id" }, msgpack.unpack(matching.inside("parse", "argument.customer.id")))
    assert.are.same({ "a.b", "c\\d" }, msgpack.unpack(matching.inside("parse", "argument.a\\.b.c\\\\d")))
  end)
  it("leads to every scalar, as the same text however it is encoded", function()
    for _, scalar in ipairs(atoms.scalars) do
      for _, form in ipairs(scalar.forms) do
        assert.are.equal(scalar.text, value("argument", form))
        assert.are.equal(scalar.text, value("argument.a", "\129\161a" .. form))
        assert.are.equal(scalar.text, value("argument.1", "\146\192" .. form))
      end
    end
  end)
  it("leads to maps and lists as to their content", function()
    local first = value("argument.a", "\129\161a\130\161b\1\161c\2")
    assert.is_truthy(first:find("^hm%x+$"))
    assert.are.equal(first, value("argument.a", "\129\161a\130\161c\2\161b\1"))
    assert.are_not.equal(first, value("argument.a", "\129\161a\130\161c\1\161b\2"))
    assert.are_not.equal(first, value("argument.a", "\129\161a\146\1\2"))
  end)
  it("leads nowhere where nothing is", function()
    for _, argument in ipairs({ "\192", "\1", "\128", "\145\161a", "\129\161a\192", "\129\161b\1",
      unpack(atoms.broken) }) do
      assert.are.equal("n", value("argument.a", argument))
    end
    assert.are.equal("dnan", value("argument", "\203\127\248\0\0\0\0\0\0"))
    assert.are.equal("n", value("argument.01", "\146\1\2"))
  end)
end)
