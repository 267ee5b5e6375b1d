-- The version of what the partitions of a system have in common.
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("the version of settings", function()
  local jq = space.each()

  local function key()
    return jq:redis("GET", jq.name .. ":settings-version")
  end
  local MATCH = msgpack.pack({ name = "a" })
  local CHANGES = {
    { "config", { set = { done_max = 5 } } },
    { "config", {} }, -- a version alone
    { "queue", { name = "q", paused = true } },
    { "queue", { name = "q" } },
    { "subscribe", { id = "hook", url = "http://host/" }, MATCH },
    { "unsubscribe", { id = "hook" } },
    { "grant", { id = "0123456789ab", digest = ("0"):rep(64), name = "ann", roles = { "viewer" } } },
    { "grant", { id = "0123456789ab", digest = ("0"):rep(64), name = "ann", roles = { "viewer" } } }, -- is there
    { "revoke", { id = "0123456789ab" } },
    { "constrain", { id = "c", concurrency = 1 }, MATCH },
    { "constrain", { id = "c", concurrency = 1 }, MATCH },
    { "unconstrain", { id = "c" } },
    { "forget", { queue = "q" } },
  }
  local function change(one, from, to)
    return one[1], space.with(one[2], { settings = { from, to } }), one[3]
  end

  it("moves with each change, and is told to who knows another, whose change is none", function()
    for i, one in ipairs(CHANGES) do
      local own = i == 1 and "0" or (i - 1) .. "-a"
      for _, other in ipairs({ "0", i .. "-a", (i - 1) .. "-b", "99-a" }) do
        if other ~= own then
          jq:unchanged(function()
            jq:refuses("STALE " .. own, change(one, other, i .. "-a"))
          end)
        end
      end
      jq:call(change(one, own, i .. "-a"))
      assert.are.equal(i .. "-a", key())
    end
  end)
  it("stays with changes that are refused, or say nothing of it", function()
    jq:call("config", { settings = { "0", "1-a" } })
    jq:refuses("NOTFOUND id", "unconstrain", { id = "c", settings = { "1-a", "2-a" } })
    jq:refuses("INVALID set.none", "config", { set = { none = 1 }, settings = { "1-a", "2-a" } })
    jq:call("queue", { name = "q", paused = true })
    assert.are.equal("1-a", key())
  end)
  it("is no part of what the trail tells", function()
    jq:call("queue", { name = "q", paused = true, settings = { "0", "1-a" } })
    jq:call("queue", { name = "q", settings = { "1-a", "2-a" } })
    local _, newest, more = unpack(jq:call("trail", {}))
    assert.are.same({ paused = true }, msgpack.unpack(newest).change)
    assert.is_nil(more)
  end)

  describe("that who asks for jobs knows:", function()
    before_each(function()
      jq:call("config", { settings = { "0", "7-a" } })
      jq:enqueue("a")
      jq:enqueue("a")
    end)

    it("with another nothing starts", function()
      for _, other in ipairs({ "0", "6-a", "7-b", "8-a" }) do
        assert.are.same({ "STALE 7-a" }, jq:call("pick", { worker = "w", queues = "a", settings = other }))
        assert.are.same({ "STALE 7-a" },
          jq:call("pick", { worker = "w", queues = "a", settings = other, request = "r" }))
      end
      assert.are.equal(3, #jq:call("pick", { worker = "w", queues = "a", settings = "7-a" }))
      assert.are.equal(3, #jq:call("pick", { worker = "w", queues = "a" }))
    end)
    it("where none was ever told it is 0", function()
      jq:redis("DEL", jq.name .. ":settings-version")
      assert.are.same({ "STALE 0" }, jq:call("pick", { worker = "w", queues = "a", settings = "7-a" }))
      assert.are.equal(3, #jq:call("pick", { worker = "w", queues = "a", settings = "0" }))
    end)
    it("outcomes are taken, whatever it is", function()
      local job = jq:take("a")
      local outcome = msgpack.pack({ id = job.id, token = job.token, type = "success" })
      local function finish(settings)
        return jq:call("finish", { worker = "w", pick = { queues = "a", settings = settings } }, outcome, msgpack.NIL)
      end
      assert.are.same({ "done", "STALE 7-a" }, finish("6-a"))
      assert.are.equal("done", jq:get(job.id).status)
      assert.are.equal(4, #finish("7-a"))
    end)
    it("who repeats a request gets what it started before", function()
      local spec = { worker = "w", queues = "a", settings = "7-a", request = "r" }
      local started = jq:call("pick", spec)
      jq:call("config", { settings = { "7-a", "8-a" } })
      assert.are.same({ 0, started[2], started[3] }, jq:call("pick", spec))
    end)
    it("who asks is awake, and does not sleep", function()
      jq:call("pick", { worker = "w", queues = "none", settings = "7-a", wait = { on = "n", ms = 60000 } })
      assert.are.equal(1, jq:redis("ZCARD", jq.name .. ":asleep:n"))
      jq:call("pick", { worker = "w", queues = "none", settings = "6-a", wait = { on = "n", ms = 60000 } })
      assert.are.equal(0, jq:redis("ZCARD", jq.name .. ":asleep:n"))
    end)
    it("nothing is pushed either", function()
      jq:call("register", { name = "w", url = "http://host/", queues = "a", max_jobs = 5 })
      assert.are.same({ "STALE 7-a" }, jq:call("assign", { master = "m", settings = "6-a" }))
      assert.are.same({ "STALE 7-a" }, jq:call("assign", { master = "m", settings = "6-a", request = "r" }))
      local started = jq:call("assign", { master = "m", settings = "7-a", request = "r" })
      assert.are.equal(1 + 2 * 6, #started)
      assert.are.equal(#started, #jq:call("assign", { master = "m", settings = "6-a", request = "r" }))
    end)
  end)

  it("is a text of a number and digits", function()
    for _, wrong in ipairs({ "", "1", "a", "1-", "-a", "1-g", "1-A b", ("1"):rep(39) .. "-a", 1, true, {} }) do
      jq:refuses("INVALID settings: expected a version of settings", "pick",
        { worker = "w", queues = "a", settings = wrong })
      jq:refuses("INVALID pick.settings: expected a version of settings", "finish",
        { worker = "w", pick = { queues = "a", settings = wrong } })
      jq:refuses("INVALID settings: expected a version of settings", "assign", { master = "m", settings = wrong })
      jq:refuses("INVALID settings: expected a list of two", "config", { settings = { "0", wrong } })
      jq:refuses("INVALID settings: expected a list of two", "config", { settings = { wrong, "0" } })
    end
    for _, wrong in ipairs({ {}, { "0" }, { "0", "0", "0" }, "0", 1 }) do
      jq:refuses("INVALID settings: expected a list of two", "config", { settings = wrong })
    end
  end)
end)
