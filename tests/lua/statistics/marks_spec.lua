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
