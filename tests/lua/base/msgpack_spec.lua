-- Reading MessagePack of clients.
local atoms = require "support.atoms"
local matching = require "support.matching"

--- What a blob is read as, packed; "" when it is no whole value.
local function read(blob, shows_nil)
  return matching.inside("read", tostring(shows_nil or false), blob)[1]
end

describe("reading MessagePack #once", function()
  it("takes binary data and ext for text, large integers for floats", function()
    assert.are.equal("\163a\0b", read("\196\3a\0b"))
    assert.are.equal("\129\161a\146\163a\0b\162\5x", read("\129\161a\146\197\0\3a\0b\212\5x"))
    assert.are.equal("\162\5\0", read("\199\1\5\0"))
    assert.are.equal("\217\33\5" .. ("x"):rep(32), read("\200\0\32\5" .. ("x"):rep(32)))
    assert.are.equal("\202\95\128\0\0", read("\207" .. ("\255"):rep(8)))
    assert.are.equal("\146\1\202\95\0\0\0", read("\146\1\207\128" .. ("\0"):rep(7)))
    assert.are.equal("\255", read("\211" .. ("\255"):rep(8)))
  end)
  it("leaves nil out, or shows it", function()
    assert.are.equal("\129\161b\1", read("\130\161a\192\161b\1"))
    assert.are.equal("\146\161\255\1", read("\146\192\1", true))
  end)
  it("reads lists and maps of any size", function()
    assert.are.equal("\147\1\2\3", read("\221\0\0\0\3\1\2\3"))
    assert.are.equal("\129\161a\161b", read("\222\0\1\161a\196\1b"))
    assert.are.equal("\129\161a\161b", read("\223\0\0\0\1\161a\196\1b"))
  end)
  it("gives nothing for what is not one whole value", function()
    for _, broken in ipairs(atoms.broken) do
      assert.are.equal("", read(broken))
      assert.are.equal("", read(broken, true))
    end
    assert.are.equal("", read(("\145"):rep(100000) .. "\1"))
    assert.are.equal("", read("\219\0\16\0\0" .. ("x"):rep(1048576)))
  end)
  it("never fails otherwise, whatever the bytes", function()
    math.randomseed(31)
    for _ = 1, 500 do
      local bytes = {}
      for i = 1, math.random(30) do
        bytes[i] = string.char(math.random(0, 255))
      end
      read(table.concat(bytes), math.random(2) == 1)
    end
  end)
end)
