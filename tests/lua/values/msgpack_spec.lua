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
    it("nothing behind the end", function()
      assert.is_nil(msgpack.skip("\1", 2))
      assert.is_nil(msgpack.skip("", 1))
      assert.is_nil(msgpack.skip("\1", 100))
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
    it("long lists and maps", function()
      assert.is_true(msgpack.is_whole("\221\0\1\134\160" .. ("\1"):rep(100000)))
      assert.is_false(msgpack.is_whole("\221\0\1\134\160" .. ("\1"):rep(99999)))
      assert.is_true(msgpack.is_whole("\223\0\1\134\160" .. ("\1\161a"):rep(100000)))
    end)
  end)

  describe("takes for one whole value", function()
    it("every value", function()
      for _, value in ipairs(all_values()) do
        assert.is_true(msgpack.is_whole(value), show(value))
        assert.is_false(msgpack.is_whole(value .. "\192"), show(value))
      end
    end)
    it("nothing that is none or more", function()
      for _, broken in ipairs(atoms.broken) do
        assert.is_false(msgpack.is_whole(broken), show(broken))
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
    it("every scalar to the same text, however it is encoded", function()
      for _, scalar in ipairs(atoms.scalars) do
        for _, form in ipairs(scalar.forms) do
          assert.are.equal(scalar.text, msgpack.canonical(form, 1), show(form))
          assert.are.equal(scalar.text, msgpack.canonical("\1\1" .. form .. "\1", 3), show(form))
        end
      end
    end)
    it("different scalars to different texts", function()
      local known = {}
      for _, scalar in ipairs(atoms.scalars) do
        assert.is_nil(known[scalar.text], scalar.text)
        known[scalar.text] = true
      end
    end)
    it("no text of maps, lists and NaN", function()
      for _, other in ipairs(atoms.others) do
        assert.is_nil(msgpack.canonical(other, 1), show(other))
      end
    end)
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

  describe("opens", function()
    it("lists and maps, and nothing else", function()
      assert.are.same({ 2, 3, false }, { msgpack.open("\147\1\2\3", 1) })
      assert.are.same({ 2, 1, true }, { msgpack.open("\129\1\2", 1) })
      assert.are.same({ 4, 256, false }, { msgpack.open("\220\1\0", 1) })
      assert.are.same({ 6, 4294967295, false }, { msgpack.open("\221\255\255\255\255", 1) })
      assert.are.same({ 4, 2, true }, { msgpack.open("\222\0\2", 1) })
      assert.are.same({ 6, 2, true }, { msgpack.open("\223\0\0\0\2", 1) })
      for _, scalar in ipairs(atoms.scalars) do
        assert.is_nil((msgpack.open(scalar.forms[1], 1)))
      end
      assert.is_nil((msgpack.open("", 1)))
      assert.is_nil((msgpack.open("\220\1", 1)))
    end)
  end)

  describe("finds", function()
    local function found(blob, ...)
      local pos = msgpack.find(blob, { ... })
      assert.are.equal(pos, msgpack.find(blob, { ... }, msgpack.index(blob)), show(blob))
      return pos and msgpack.raw(blob, pos)
    end

    it("the whole, when there is no path", function()
      assert.are.equal(1, msgpack.find("\1", {}))
      assert.are.equal(1, msgpack.find("\129\161a\1", {}, msgpack.index("\129\161a\1")))
    end)
    it("the value of a key, however the key is encoded", function()
      for _, form in ipairs(atoms.text_forms("key")) do
        assert.are.equal("\7", found("\130\161a\1" .. form .. "\7", "key"))
      end
      local long = ("k"):rep(300)
      for _, form in ipairs(atoms.text_forms(long)) do
        assert.are.equal("\7", found("\129" .. form .. "\7", long))
      end
    end)
    it("integer keys by their digits", function()
      for _, scalar in ipairs(atoms.scalars) do
        if scalar.text:sub(1, 1) == "i" then
          for _, form in ipairs(scalar.forms) do
            local is_float = form:byte() == 0xCA or form:byte() == 0xCB
            assert.are.equal(not is_float and "\7" or nil, found("\130\161a\1" .. form .. "\7", scalar.text:sub(2)))
          end
        end
      end
    end)
    it("no key for digits written another way", function()
      for _, segment in ipairs({ "01", "+1", "1.0", "1e0", "0x1", " 1", "-0", "" }) do
        assert.is_nil(found("\130\0\1\1\2", segment), segment)
        assert.is_nil(found("\146\1\2", segment), segment)
      end
    end)
    it("the first of equal keys, and of a text and an integer written alike", function()
      assert.are.equal("\1", found("\130\161a\1\161a\2", "a"))
      assert.are.equal("\1", found("\130\5\1\1615\2", "5"))
      assert.are.equal("\1", found("\130\1615\1\5\2", "5"))
      local large = "18446744073709551615"
      local as_integer, as_text = "\207" .. ("\255"):rep(8), atoms.text_forms(large)[1]
      assert.are.equal("\1", found("\130" .. as_integer .. "\1" .. as_text .. "\2", large))
      assert.are.equal("\1", found("\130" .. as_text .. "\1" .. as_integer .. "\2", large))
    end)
    it("elements from 0, and none behind the last", function()
      local list = "\147\161a\146\1\2\195"
      assert.are.equal("\161a", found(list, "0"))
      assert.are.equal("\2", found(list, "1", "1"))
      assert.are.equal("\195", found(list, "2"))
      for _, segment in ipairs({ "3", "-1", "a", "4294967296", "18446744073709551615" }) do
        assert.is_nil(found(list, segment))
      end
    end)
    it("nothing in what holds nothing", function()
      for _, blob in ipairs({ "\1", "\161a", "\192", "\128", "\144", "\196\1a", "\212\1a" }) do
        assert.is_nil(found(blob, "a"))
        assert.is_nil(found(blob, "0"))
        assert.is_nil(found("\129\161a" .. blob, "a", "a"))
      end
    end)
    it("nothing where the way is cut off or malformed", function()
      for _, blob in ipairs({ "", "\129", "\129\161a", "\129\161", "\129\193\1", "\130\161b\193\161a\1",
        "\130\161b\161", "\223\255\255\255\255\161b\1", "\145", "\129\217", "\129\219\255\255\255\255" }) do
        assert.is_nil(msgpack.find(blob, { "a" }), show(blob))
      end
      assert.is_nil(msgpack.find("\146\217", { "1" }))
      assert.is_nil(msgpack.find("\129\161a\129\161b", { "a", "b" }))
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
