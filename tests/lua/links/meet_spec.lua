-- What a partition knows of jobs whose bucket it had before: keys that are held, and calls that it answered.
local msgpack = require "support.msgpack"
local space = require "support.space"

local NIL = msgpack.NIL
local CODE = { name = "a", unique = "k" }

describe("meet", function()
  local jq = space.each()

  local function enqueue(spec, options)
    return jq:call("enqueue", options or {}, spec, NIL)[1]
  end

  it("tells who has a key, and makes nothing", function()
    local id = enqueue(CODE)
    local reply = jq:call("meet", {}, { name = "a" }, NIL, CODE, NIL, { name = "a", unique = "free" }, NIL)
    assert.are.same({ "", 0, id, 0, "", 0 }, reply)
    assert.are.same({ id }, jq:pick_ids({ queues = "a", count = 5 }))
  end)
  it("does with who has it as the new one says", function()
    local id = enqueue(CODE)
    jq:call("meet", {}, { name = "a", unique = "k", if_exists = "replace", priority = 3 }, "\7")
    assert.are.same({ 3, 7 }, { jq:get(id).priority, jq:get(id).argument })
    local job = jq:take("a")
    local behind = jq:call("meet", {}, { name = "a", unique = "k", if_exists = "latest" }, NIL)
    assert.are.equal(1, behind[2])
    assert.are.same({}, jq:pick_ids("a"))
    assert.are.same({ behind[1], 0 }, jq:call("meet", {}, CODE, NIL))
    jq:succeed(job)
    assert.are.same({ behind[1] }, jq:pick_ids("a"))
  end)
  it("tells what a call was answered that it knows", function()
    local first = jq:call("enqueue", { request = "r" }, { name = "a" }, NIL, CODE, NIL)
    jq:succeed(jq:take("a"))
    assert.are.same(first, jq:call("meet", { request = "r" }, { name = "a" }, NIL, CODE, NIL))
    assert.are.same({ "", 0, first[3], 0 }, jq:call("meet", { request = "r" }, { name = "b" }, NIL, CODE, NIL))
  end)
  it("answers the same once more, when a key was held", function()
    enqueue(CODE)
    jq:take("a")
    local spec = { name = "a", unique = "k", if_exists = "latest" }
    local first = jq:call("meet", { request = "r" }, { name = "a" }, NIL, spec, NIL)
    assert.are.same(first, jq:call("meet", { request = "r" }, { name = "a" }, NIL, spec, NIL))
    assert.are.equal(1, jq:call("enqueue", { request = "r" }, { name = "c" }, NIL)[2], "no token of enqueue")
  end)
  it("is answered by the record that is here alone", function()
    jq:redis("SET", jq.name .. ":generation", 3)
    assert.are.same({ "", 0 }, jq:call("meet", { generation = 3 }, CODE, NIL))
    for _, generation in ipairs({ 2, 4 }) do
      jq:refuses("ROUTE generation: this is generation 3 of the system, the call was routed by " .. generation, "meet",
        { generation = generation }, CODE, NIL)
    end
  end)
end)
