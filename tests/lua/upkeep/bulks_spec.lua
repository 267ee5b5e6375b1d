-- Bulk operations: what is to be done to many jobs, by whom, and how far it is.
local msgpack = require "support.msgpack"
local space = require "support.space"

local START_MS = space.START_MS

describe("bulk", function()
  local jq = space.each()

  local function begin(fields)
    local spec = { what = "discard", where = { queue = "a", status = "queued" }, actor = "op" }
    for name, value in pairs(fields or {}) do
      spec[name] = value
    end
    return msgpack.unpack(jq:call("bulk", spec))
  end
  local function step(id, fields)
    local spec = { id = id, holder = "m1" }
    for name, value in pairs(fields or {}) do
      spec[name] = value
    end
    return msgpack.unpack(jq:call("bulk", spec))
  end
  local function listed()
    local found = {}
    for i, document in ipairs(jq:call("bulks", {})) do
      found[i] = msgpack.unpack(document)
    end
    return found
  end

  it("stands there with what is to be done", function()
    local one = begin({ total = 5 })
    assert.are.same({ "discard", { queue = "a", status = "queued" }, 5, 0, "", "op", START_MS, 0, false },
      { one.what, one.where, one.total, one.changed, one.cursor, one.actor, one.begun_ms, one.resumed, one.stopped })
    assert.are.same({ one }, listed())
  end)
  it("is one at a time for a queue, and twenty in all", function()
    local one = begin()
    jq:refuses("CONFLICT where.queue: bulk operation " .. one.id, "bulk", { what = "retry", where = { queue = "a" } })
    step(one.id, { ended = true })
    begin()
    for i = 1, 18 do
      begin({ where = { queue = "b" .. i } })
    end
    begin({ where = { status = "error" }, what = "retry", queue = "c" })
    jq:refuses("CONFLICT where.queue: ", "bulk", { what = "discard", where = { name = "x" } })
    jq:refuses("FULL where: 20 bulk operations", "bulk", { what = "discard", where = { queue = "z" } })
  end)
  it("is its holder's while he goes on, then another's", function()
    local one = begin()
    step(one.id)
    jq:refuses("CONFLICT id: another master runs it", "bulk", { id = one.id, holder = "m2" })
    jq:pass(5)
    assert.are.equal(100, step(one.id, { cursor = "x", changed = 100 }).changed)
    jq:pass(9.999)
    jq:refuses("CONFLICT id: another master runs it", "bulk", { id = one.id, holder = "m2" })
    jq:pass(0.001)
    local taken = step(one.id, { holder = "m2" })
    assert.are.same({ "x", 100, 1 }, { taken.cursor, taken.changed, taken.resumed })
    jq:refuses("CONFLICT id: another master runs it", "bulk", { id = one.id, holder = "m1", changed = 5 })
    assert.are.equal(107, step(one.id, { holder = "m2", changed = 7, ended = true }).changed)
    jq:refuses("CONFLICT id: it has ended", "bulk", { id = one.id, holder = "m2" })
  end)
end)
