-- Slots of registered workers for jobs of other partitions.
local space = require "support.space"
local msgpack = require "support.msgpack"

local FIRST, SECOND = "0000000000000107", "0000000000000207"

describe("slots", function()
  local jq = space.each()

  local function push_to(fields)
    fields.url = fields.url or "http://w/"
    return jq:register(fields)
  end

  local function slots(...)
    return jq:call("slots", { jobs = { ... }, limit = 0 })[1]
  end

  it("are kept while there is room", function()
    local id = push_to({ max_jobs = 2 })
    jq:enqueue("a")
    assert.are.equal(1, #jq:assign())
    assert.are.same({ 1, 0 }, slots({ id, FIRST, "1-a", 5000 }, { id, SECOND, "1-b", 5000 }))
    assert.are.same({ "full", 2 }, { jq:worker(id).state, jq:worker(id).held })
    assert.are.same({ 1, 1 }, slots({ id, FIRST, "1-a", 0 }, { id, SECOND, "1-b", 5000 }))
  end)
  it("are renewed also where there is no room, and once", function()
    local id = push_to({})
    assert.are.same({ 1, 1, 1, 0 }, slots({ id, FIRST, "1-a", 9 }, { id, FIRST, "1-a", 5000 }, { id, FIRST, "1-a", 0 },
      { id, FIRST, "1-a", 0 }))
  end)
  it("belong to an attempt, a later one in place of the one before", function()
    local id = push_to({})
    assert.are.same({ 1, 1, 0, 0 }, slots({ id, FIRST, "1-a", 9000 }, { id, FIRST, "2-b", 9000 },
      { id, FIRST, "1-a", 0 }, { id, FIRST, "1-a", 9000 }))
    assert.are.same({ FIRST, "2-b" }, jq:call("slots", { worker = id }))
    assert.are.same({ 1 }, slots({ id, FIRST, "2-b", 0 }))
    assert.are.same({}, jq:call("slots", { worker = id }))
  end)
  it("end by themselves, with the grace of leases", function()
    local id = push_to({})
    jq:set({ lease_grace = 1 })
    slots({ id, FIRST, "1-a", 1000 })
    jq:enqueue("a")
    jq:pass(1.999)
    assert.are.equal(0, #jq:assign())
    jq:pass(0.001)
    assert.are.equal(1, #jq:assign())
  end)
  it("are nobody's who rests, is quiet, is not there or was registered with a key that is gone", function()
    local busy, quiet, keyless = push_to({ url = "http://1/" }), push_to({ url = "http://2/" }),
      push_to({ url = "http://3/", key = "0123456789ab" })
    jq:call("refuse", { worker = busy, jobs = {}, why = "busy" })
    jq:call("worker", { worker = quiet, request = "quiet" })
    for _, id in ipairs({ busy, quiet, keyless, jq:register({}), space.UNKNOWN_WORKER }) do
      assert.are.same({ 0 }, slots({ id, FIRST, "1-a", 5000 }))
    end
    assert.are.same({ {} }, jq:call("slots", { jobs = {} }))
  end)
  it("go with the worker, and are no jobs that are kicked", function()
    local id = push_to({ max_jobs = 5 })
    slots({ id, FIRST, "1-a", 5000 })
    assert.are.same({ 0, 0 }, jq:call("kick", { worker = id }))
    assert.are.equal(1, jq:call("unregister", { worker = id }))
    assert.are.same({}, jq:call("slots", { worker = id }))
    jq:pass(6)
    jq:call("tick", {})
  end)
  it("come with who has room, of each pool the least loaded", function()
    local ids = {}
    for i = 1, 3 do
      ids[i] = push_to({ url = "http://" .. i .. "/", queues = i < 3 and "a" or { "b", "c" }, max_jobs = i })
    end
    local reply = jq:call("slots", { jobs = { { ids[2], FIRST, "1-a", 5000 } }, limit = 2 })
    local told = {}
    for i = 2, #reply, 5 do
      told[reply[i]] = { reply[i + 1], reply[i + 2], reply[i + 3], msgpack.unpack(reply[i + 4]) }
    end
    assert.are.same({
      [ids[1]] = { "http://1/", "", "", { queues = { "a" }, refused = {}, free = 1, max_jobs = 1 } },
      [ids[3]] = { "http://3/", "", "", { queues = { "b", "c" }, refused = {}, free = 3, max_jobs = 3 } },
    }, told)
  end)
end)
