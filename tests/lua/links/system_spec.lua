-- The record of a system, and calls that were routed by one that is not the last.
local msgpack = require "support.msgpack"
local space = require "support.space"
local system = require "support.system"

describe("the record of a system", function()
  local jqs = system.each(2)

  local function record(generation, more)
    local partitions, buckets = {}, {}
    for i = 0, 1 do
      partitions[i + 1] = { jqs[i].name, "active" }
    end
    for i = 1, 1024 do
      buckets[i] = i % 2
    end
    return msgpack.pack(space.with({ format = 1, generation = generation, partitions = partitions, buckets = buckets },
      more))
  end
  before_each(function()
    for i = 0, 1 do
      jqs[i]:redis("DEL", jqs[i].name .. ":system")
    end
  end)

  it("is told", function()
    assert.are.same({ 0, "" }, jqs[0]:call("system", {}))
    local one = record(1)
    assert.are.same({ 1, one }, jqs[0]:call("system", { from = 0 }, one))
    assert.are.same({ 1, one }, jqs[0]:call("system", {}))
    assert.are.same({ 0, "" }, jqs[1]:call("system", {}))
  end)
  it("follows the one that it is made from", function()
    jqs[0]:call("system", { from = 0 }, record(1))
    local two = record(2)
    jqs[0]:call("system", { from = 1 }, two)
    jqs[0]:refuses("CONFLICT from: the record here is of generation 2", "system", { from = 1 }, record(2))
    jqs[0]:refuses("CONFLICT from: the record here is of generation 2", "system", { from = 2 }, record(4))
    jqs[0]:refuses("CONFLICT from: the record here is of generation 2", "system", { from = 3 }, record(4))
    jqs[0]:refuses("CONFLICT from: the record here is of generation 2", "system", { from = 0 }, record(1))
    assert.are.same({ 2, two }, jqs[0]:call("system", {}))
  end)
  it("is copied, if it is later than what is there", function()
    local three = record(3)
    assert.are.same({ 3, three }, jqs[1]:call("system", {}, three))
    assert.are.same({ 3, three }, jqs[1]:call("system", {}, record(2)))
    local five = record(5)
    assert.are.same({ 5, five }, jqs[1]:call("system", {}, five))
  end)
  it("has this namespace at its place", function()
    local other = { { jqs[1].name, "active" }, { jqs[0].name, "active" } }
    jqs[1]:refuses("INVALID record.partitions: this namespace is not in it", "system", {},
      record(1, { partitions = other }))
    jqs[0]:refuses("INVALID record.partitions: this namespace is not in it", "system", {},
      record(1, { partitions = other }))
  end)
  it("of another format is neither taken nor replaced", function()
    jqs[0]:refuses("VERSION record: this record of a system has another format than 1", "system", {},
      record(1, { format = 2 }))
    jqs[0]:redis("SET", jqs[0].name .. ":system", record(1, { format = 2 }))
    jqs[0]:refuses("VERSION " .. jqs[0].name .. ":system: this record", "system", {}, record(3))
    jqs[0]:refuses("VERSION " .. jqs[0].name .. ":system: this record", "system", {})
  end)

  describe("says by which generation calls may be routed:", function()
    local function enqueue(options)
      return jqs[1]:call("enqueue", options, { name = "a" }, msgpack.NIL)
    end
    before_each(function()
      jqs[1]:call("system", {}, record(3))
    end)

    it("not by an earlier one, and nothing happens then", function()
      local problem = "ROUTE generation: this is generation 3 of the system, the call was routed by 2"
      jqs[1]:refuses(problem, "enqueue", { generation = 2 }, { name = "a" }, msgpack.NIL)
      jqs[1]:refuses(problem, "enqueue", { request = "r", generation = 2 }, { name = "a" }, msgpack.NIL)
      assert.are.equal(0, jqs[1]:redis("EXISTS", jqs[1].name .. ":request:e:r"))
      assert.are.equal(1, #jqs[1]:call("queues", {}))
    end)
    it("by this one and later ones, and by those that say nothing of it", function()
      assert.are.equal(1, enqueue({ generation = 3 })[2])
      assert.are.equal(1, enqueue({ generation = 4 })[2])
      assert.are.equal(1, enqueue({ request = "r" })[2])
      assert.are.equal(enqueue({ request = "s", generation = 3 })[1], enqueue({ request = "s", generation = 4 })[1])
    end)
    it("nobody balances who knows not all partitions", function()
      jqs[1]:refuses("ROUTE generation", "balance", { lease_ms = 1000, generation = 2 })
      local _, epoch = unpack(jqs[1]:call("balance", { lease_ms = 1000, generation = 3 }))
      jqs[1]:call("system", {}, record(4))
      jqs[1]:refuses("ROUTE generation", "balance", { lease_ms = 1000, generation = 3, epoch = epoch, turn = 1 }, "x")
      jqs[1]:call("balance", { lease_ms = 1000, generation = 4, epoch = epoch, turn = 1 }, "x")
    end)
  end)
  it("is no matter of a namespace that is in none", function()
    assert.are.equal(1, jqs[0]:call("enqueue", { generation = 0 }, { name = "a" }, msgpack.NIL)[2])
  end)
end)
