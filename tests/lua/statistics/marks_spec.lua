local msgpack = require "support.msgpack"
local space = require "support.space"

local DAY_MS = 86400000

describe("marks", function()
  local jq = space.each()
  local now
  before_each(function()
    jq:set_clock(500 * DAY_MS)
    now = 500 * DAY_MS
  end)

  local function mark(text, time_ms, actor)
    return msgpack.unpack(jq:call("mark", { text = text, time_ms = time_ms, actor = actor }))
  end

  --- Texts of a listing, page by page.
  local function texts(spec)
    spec = spec or {}
    local found = {}
    repeat
      local reply = jq:call("marks", spec)
      for i = 2, #reply do
        found[#found + 1] = msgpack.unpack(reply[i]).text
      end
      spec.cursor = reply[1]
    until reply[1] == ""
    return found
  end

  it("have a moment, a text, and who said so", function()
    assert.are.same({ time_ms = now, text = "v1", actor = "ann" }, mark("v1", nil, "ann"))
    assert.are.same({ time_ms = now - 5, text = "ä b", actor = "" }, mark("ä b", now - 5))
    local reply = jq:call("marks", {})
    assert.are.equal("", reply[1])
    assert.are.same({ time_ms = now, text = "v1", actor = "ann" }, msgpack.unpack(reply[2]))
    assert.are.same({ time_ms = now - 5, text = "ä b", actor = "" }, msgpack.unpack(reply[3]))
  end)
  it("of the same text within a minute are one, as are those of the same text and moment", function()
    local first = mark("v1", nil, "ann")
    jq:pass(60)
    assert.are.same(first, mark("v1", nil, "bob"))
    mark("v2")
    jq:pass(0.001)
    mark("v1")
    mark("old", now - 5)
    mark("old", now - 5, "ann")
    mark("old", now - 6)
    assert.are.same({ "v1", "v2", "v1", "old", "old" }, texts())
    assert.are.equal(6, #jq:call("trail", {})) -- which has no more either
  end)
  it("are listed by time, in pages", function()
    for i = 1, 7 do
      mark("m" .. i, now - 1000 * i)
    end
    mark("also", now - 2000)
    local all = { "m1", "m2", "also", "m3", "m4", "m5", "m6", "m7" }
    for count = 1, 9 do
      assert.are.same(all, texts({ count = count }))
    end
    assert.are.same({ "m2", "also", "m3" }, texts({ from_ms = now - 3000, to_ms = now - 1000, count = 1 }))
    assert.are.same({ "m3" }, texts({ from_ms = now - 3000.5, to_ms = now - 2000 }))
    assert.are.same({}, texts({ from_ms = now }))
  end)
  it("are kept for 400 days, and at most 1000 #once", function()
    mark("old", now - 400 * DAY_MS + 1)
    mark("v1")
    assert.are.same({ "v1", "old" }, texts())
    jq:pass(1)
    assert.are.same({ "v1" }, texts())
    for i = 1, 1000 do
      mark("m" .. i, now - i)
    end
    local found = texts({ count = 1000 })
    assert.are.same({ 1000, "v1", "m999" }, { #found, found[1], found[1000] })
  end)
end)
