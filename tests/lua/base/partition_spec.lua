-- A namespace that is a partition of a system: its ids name it. All other specs run so with JQ_PARTITION=7.
local msgpack = require "support.msgpack"
local server = require "support.server"
local space = require "support.space"

describe("a partition", function()
  local jq = space.each({ setup = false })
  local function set_up(partition)
    return jq:call("setup", partition and { partition = partition })
  end

  it("has two digits of its own at the end of each id", function()
    assert.are.equal(4, set_up(10))
    local first, second = jq:enqueue("a"), jq:enqueue("a", { unique = "u" })
    assert.are.equal("0a", first:sub(15))
    assert.are.equal("0a", second:sub(15))
    assert.is_true(first < second)
    assert.is_truthy(jq:register({ queues = "a" }):match("^w%x%x%x%x%x%x%x%x%x%x%x%x%x%x0a$"))
    assert.are.equal(space.START_MS, jq:get(first).created_ms)
    assert.are.same({ first, second }, jq:pick_ids({ queues = "a", count = 2 }))
  end)
  it("stays the same one", function()
    set_up(255)
    assert.are.equal(4, set_up(255))
    assert.are.equal("ff", jq:enqueue("a"):sub(15))
    assert.are.equal(4, set_up(255))
    jq:refuses("CONFLICT partition: namespace " .. jq.name .. " has given ids of another one, or of none", "setup",
      { partition = 254 })
    assert.are.equal(4, jq:call("setup"))
    assert.are.equal("ff", jq:enqueue("a"):sub(15))
  end)
  it("may become of a namespace that gave no id", function()
    jq:redis("EVALSHA", server.sha("settable", "setup"), 2, jq.name, jq.name .. ":meta")
    set_up(1)
    assert.are.equal("01", jq:enqueue("a"):sub(15))
  end)
  it("may not become of one that did", function()
    jq:redis("EVALSHA", server.sha("settable", "setup"), 2, jq.name, jq.name .. ":meta")
    assert.are.equal(14, #jq:enqueue("a"))
    jq:refuses("CONFLICT partition", "setup", { partition = 1 })
  end)
  it("has no job that waits for one of another", function()
    set_up(2)
    local here = jq:enqueue("a")
    for _, there in ipairs({ here:sub(1, 14), here:sub(1, 14) .. "01", here:sub(1, 14) .. "03" }) do
      local problem = "job " .. there .. " is of another partition than the one that waits for it"
      jq:refuses("INVALID jobs[0].depends[0]: " .. problem, "enqueue", { name = "b", depends = { there } },
        msgpack.NIL)
      jq:refuses("INVALID add[0]: " .. problem, "depend", { id = here, add = { there } })
    end
    jq:enqueue("b", { depends = { here } })
  end)
  it("knows no id that ends in two noughts, which is no partition's", function()
    set_up(2)
    jq:refuses("INVALID ids[0]: expected a job id of 14 or 16 hexadecimal digits", "cancel",
      { ids = { ("0"):rep(16) } })
  end)
end)
