local atoms = require "support.atoms"
local matching = require "support.matching"

local msgpack = matching.module("values.msgpack")
local hex = atoms.hex

--- Everything that can be encoded in one value or another.
local function all_values()
  local all = {}
  for _, scalar in ipairs(atoms.scalars) do
    for _, form in ipairs(scalar.forms) do
      all[#all + 1] = form
    end
  end
  for _, other in ipairs(atoms.others) do
    all[#all + 1] = other
  end
  math.randomseed(3)
  for _ = 1, 100 do
    all[#all + 1] = atoms.tree(3).bytes
  end
  return all
end

local function show(bytes)
  return (bytes:gsub(".", function(character)
    return ("%02x"):format(character:byte())
  end):gsub("%z", "00"))
end

describe("msgpack #once", function()
  describe("skips", function()
    it("every value, wherever it stands", function()
      for _, value in ipairs(all_values()) do
        assert.are.equal(#value + 1, msgpack.skip(value, 1), show(value))
        assert.are.equal(#value + 4, msgpack.skip("abc" .. value .. "def", 4), show(value))
        assert.are.equal(value, msgpack.raw("abc" .. value .. "def", 4), show(value))
      end
    end)
    it("no value that is cut off, at whatever byte", function()
      for _, value in ipairs(all_values()) do
        for size = 0, math.min(#value - 1, 100) do
          local cut = value:sub(1, size)
          if msgpack.skip(cut, 1) or msgpack.raw(cut, 1) or msgpack.is_whole(cut) then
            error("not noticed: " .. show(cut))
          end
        end
      end
    end)
    it("no byte that MessagePack never uses, also inside", function()
      assert.is_nil(msgpack.skip("\193", 1))
      assert.is_nil(msgpack.skip("\145\193", 1))
      assert.is_nil(msgpack.skip("\129\161a\193", 1))
    end)
    it("no lengths that lie", function()
      for _, lying in ipairs({ "d9ff61", "daffff61", "dbffffffff61", "c4ff61", "c5ffff61", "c6ffffffff61", "c7ff0561",
        "c8ffff0561", "c9ffffffff0561", "dcffff01", "ddffffffff01", "deffff0101", "dfffffffff0101", "9f01", "8f0101",
        "bf61", "d80561", "d7056161" }) do
        assert.is_nil(msgpack.skip(hex(lying), 1), lying)
      end
    end)
    it("a hundred thousand levels", function()
      for _, level in ipairs({ "\145", "\129\1", "\220\0\1", "\223\0\0\0\1\161a" }) do
        local deep = level:rep(100000)
        assert.is_true(msgpack.is_whole(deep .. "\192"))
        assert.is_false(msgpack.is_whole(deep))
        assert.is_false(msgpack.is_whole(deep .. "\192\192"))
      end
    end)
  end)

  describe("takes for one whole value", function()
    it("every value", function()
      for _, value in ipairs(all_values()) do
        assert.is_true(msgpack.is_whole(value), show(value))
        assert.is_false(msgpack.is_whole(value .. "\192"), show(value))
      end
    end)
    it("the same inside Redis", function()
      local values = all_values()
      for _, broken in ipairs(atoms.broken) do
        values[#values + 1] = broken
      end
      for i, answer in ipairs(matching.inside("whole", unpack(values))) do
        assert.are.equal(tostring(msgpack.is_whole(values[i])), answer, show(values[i]))
      end
    end)
    it("random bytes, when they are one", function()
      math.randomseed(5)
      local blobs, expected = {}, {}
      for i = 1, 3000 do
        local bytes = {}
        for j = 1, math.random(0, 8) do
          bytes[j] = string.char(math.random(2) == 1 and math.random(0x80, 0xE0) or math.random(0, 255))
        end
        blobs[i] = table.concat(bytes)
        expected[i] = tostring(msgpack.is_whole(blobs[i]))
      end
      assert.are.same(expected, matching.inside("whole", unpack(blobs)))
    end)
  end)

  describe("reads", function()
    it("nothing that is cut off", function()
      for _, scalar in ipairs(atoms.scalars) do
        for _, form in ipairs(scalar.forms) do
          for size = 0, #form - 1 do
            assert.is_nil(msgpack.canonical(form:sub(1, size), 1), show(form))
          end
        end
      end
      assert.is_nil(msgpack.canonical("\193", 1))
    end)
    it("integers of 64 bits digit by digit", function()
      math.randomseed(7)
      for _ = 1, 500 do
        -- Digits by long division of the bytes.
        local bytes, digits = {}, {}
        for i = 1, 8 do
          bytes[i] = math.random(3) == 1 and math.random(2) * 255 - 255 or math.random(0, 255)
        end
        local blob = "\207" .. string.char(unpack(bytes))
        repeat
          local rest, is_zero = 0, true
          for i = 1, 8 do
            local value = rest * 256 + bytes[i]
            bytes[i], rest = math.floor(value / 10), value % 10
            is_zero = is_zero and bytes[i] == 0
          end
          table.insert(digits, 1, rest)
        until is_zero
        assert.are.equal("i" .. table.concat(digits), msgpack.canonical(blob, 1))
      end
    end)
    it("negative integers as the complement of positive ones", function()
      math.randomseed(9)
      for _ = 1, 500 do
        local bytes, complement = {}, {}
        for i = 1, 8 do
          bytes[i] = math.random(3) == 1 and math.random(2) * 255 - 255 or math.random(i == 1 and 128 or 0, 255)
        end
        bytes[1] = math.max(bytes[1], 128)
        -- -x is ~x + 1
        local carry = 1
        for i = 8, 1, -1 do
          local value = 255 - bytes[i] + carry
          complement[i], carry = value % 256, math.floor(value / 256)
        end
        assert.are.equal(msgpack.canonical("\207" .. string.char(unpack(complement)), 1):gsub("^i", "i-"),
          msgpack.canonical("\211" .. string.char(unpack(bytes)), 1))
      end
    end)
  end)

  describe("finds", function()
    local function found(blob, ...)
      local pos = msgpack.find(blob, { ... })
      assert.are.equal(pos, msgpack.find(blob, { ... }, msgpack.index(blob)), show(blob))
      return pos and msgpack.raw(blob, pos)
    end
    it("the value of a key, however the key is encoded", function()
      for _, form in ipairs(atoms.text_forms("key")) do
        assert.are.equal("\7", found("\130\161a\1" .. form .. "\7", "key"))
      end
      local long = ("k"):rep(300)
      for _, form in ipairs(atoms.text_forms(long)) do
        assert.are.equal("\7", found("\129" .. form .. "\7", long))
      end
    end)
    it("the value of an integer key, and of a text that is written like one", function()
      local large = "18446744073709551615"
      local as_integer, as_text = "\207" .. ("\255"):rep(8), atoms.text_forms(large)[1]
      assert.are.equal("\1", found("\129" .. as_integer .. "\1", large))
      assert.are.equal("\1", found("\129" .. as_text .. "\1", large))
      assert.are.equal("\1", found("\130\5\1\161a\2", "5"))
      assert.are.equal("\1", found("\130\1615\1\161a\2", "5"))
    end)
    it("through a hundred thousand levels beside the way, and on it", function()
      local deep = ("\145"):rep(100000) .. "\192"
      assert.are.equal("\7", found("\130\161x" .. deep .. "\161a\7", "a"))
      assert.are.equal("\7", found("\130" .. deep .. "\1\161a\7", "a"))
      local way = {}
      for i = 1, 1000 do
        way[i] = "0"
      end
      assert.is_not_nil(found(deep, unpack(way)))
    end)
    it("what a naive reader finds in random values", function()
      math.randomseed(11)
      local hits = 0
      for _ = 1, 3000 do
        local tree = atoms.tree(3)
        local path = atoms.path(tree)
        local expected = atoms.follow(tree, path)
        local actual = found(tree.bytes, unpack(path))
        if actual ~= (expected and expected.bytes) then
          error(table.concat(path, " / ") .. " in " .. show(tree.bytes))
        end
        hits = hits + (expected and 1 or 0)
      end
      assert.is_true(hits > 500)
    end)
  end)

  describe("an index", function()
    it("is of whole values only", function()
      for _, value in ipairs(all_values()) do
        assert.is_table(msgpack.index(value), show(value))
        assert.is_nil(msgpack.index(value .. "\192"), show(value))
        assert.is_nil(msgpack.index(value:sub(1, -2)), show(value))
      end
      for _, broken in ipairs(atoms.broken) do
        assert.is_nil(msgpack.index(broken), show(broken))
      end
    end)
  end)
end)
