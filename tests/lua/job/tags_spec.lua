local msgpack = require "support.msgpack"
local space = require "support.space"

describe("tags", function()
  local jq
  before_each(function()
    jq = space.new()
  end)
  after_each(function()
    jq:close()
  end)

  it("are kept and shown in their order", function()
    local id = jq:enqueue({ name = "a", tags = { "red", "big", "RED", "ünï", "a b", "*" } })
    assert.are.same({ "red", "big", "RED", "ünï", "a b", "*" }, jq:get(id).tags)
  end)
  it("are not shown where there are none", function()
    assert.is_nil(jq:get(jq:enqueue("a")).tags)
  end)
  it("may be 32, of 255 bytes each", function()
    local tags = {}
    for i = 1, 32 do
      tags[i] = string.format("%02d", i) .. ("x"):rep(253)
    end
    local id = jq:enqueue({ name = "a", tags = tags })
    jq:constrain({ id = "c", concurrency = 1 }, { tags = tags[32] })
    jq:enqueue({ name = "a", tags = { tags[32] } })
    assert.are.same(tags, jq:get(id).tags)
    assert.are.equal(1, #jq:start("a"))
  end)
  it("stay with the job through its whole life", function()
    local id = jq:enqueue({ name = "a", tags = { "x", "y" }, delay = 1, retry_base = 1, retry_jitter = 0,
      expires_in = 100, keep_result = true })
    local function has_tags()
      assert.are.same({ "x", "y" }, jq:get(id).tags)
    end
    has_tags()
    jq:pass(1)
    jq:fail(jq:take("a"), { message = "no", finished_at = "2026-01-01T00:00:00Z" })
    has_tags()
    jq:pass(1)
    local job = jq:take("a")
    has_tags()
    jq:release(job, 2)
    has_tags()
    jq:pass(2)
    jq:succeed(jq:take("a"), "\5")
    has_tags()
    assert.are.equal(100, (jq:get(id).expires_ms - space.START_MS) / 1000)
  end)
  it("keep a job on the priority and in the queue that it has", function()
    local ids = jq:enqueue_all({ name = "a", tags = { "x" } }, "a", { name = "a", tags = { "x" }, priority = -1 })
    assert.are.same({ ids[3], ids[1], ids[2] }, jq:pick_ids({ queues = "a", count = 5 }))
  end)
  it("that are nil count as absent", function()
    assert.is_nil(jq:get(jq:enqueue({ name = "a", tags = msgpack.raw("\192") })).tags)
  end)

  local function with(value)
    return { { name = "a" }, msgpack.NIL, { name = "a", tags = value }, msgpack.NIL }
  end
  it("refuses a tag that comes twice", function()
    jq:refuses_list("INVALID jobs[1].tags", "enqueue", with({ "x", "y", "x" }))
  end)
end)
