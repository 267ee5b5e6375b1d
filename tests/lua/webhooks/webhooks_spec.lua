-- Notifications of ends: which are made, by what, and what they tell.
local msgpack = require "support.msgpack"
local space = require "support.space"

local URL = "https://hooks.example/in?key=1"
local SECRET = "whsec_" .. ("A"):rep(32)
local OTHER = "whsec_" .. ("B"):rep(32)

describe("webhooks", function()
  local jq
  before_each(function()
    jq = space.new()
  end)
  after_each(function()
    assert.are.same({}, jq:audit())
    jq:close()
  end)

  local function subscribe(more, match)
    local spec = { id = "w", url = URL }
    for field, value in pairs(more or {}) do
      spec[field] = value
    end
    return msgpack.unpack(jq:call("subscribe", spec, msgpack.pack(match or { name = "*" })))
  end
  --- What the notifications that wait are to tell.
  local function notices()
    local found = {}
    for _, document in ipairs(jq:call("jobs", { where = { queue = "jq.webhooks" } })) do
      found[#found + 1] = document ~= "" and msgpack.unpack(document).webhook or nil
    end
    return found
  end

  describe("of one job", function()
    it("are made when it is done, with what is known of it", function()
      local id = jq:enqueue({ name = "a", queue = "q", notify = URL })
      assert.are.same({}, notices())
      jq:pass(1)
      local job = jq:take("q")
      jq:pass(1)
      jq:succeed(job)
      assert.are.same({ { url = URL, event = { id = id, name = "a", queue = "q", status = "done", attempt = 1,
        retry_count = 0, created_ms = space.START_MS, started_ms = space.START_MS + 1000,
        ended_ms = space.START_MS + 2000 } } }, notices())
    end)
    it("are made when its lease is over, it expires, is cancelled, discarded, or fails with another", function()
      local other = jq:enqueue("z")
      jq:enqueue({ name = "a", max_retry = 0, timeout = 1, notify = URL })
      jq:take("a")
      jq:enqueue({ name = "b", expires_in = 1, notify = URL })
      jq:pass(2)
      jq:settle()
      jq:cancel(jq:enqueue({ name = "c", notify = URL }))
      jq:call("discard", { ids = { jq:enqueue({ name = "d", notify = URL }) } })
      jq:enqueue({ name = "e", notify = URL, depends = { other }, if_failed = "fail" })
      jq:cancel(other)
      jq:settle()
      local told = {}
      for _, notice in ipairs(notices()) do
        local event = notice.event
        told[event.name] = event.status .. " " .. (event.reason or "")
      end
      assert.are.same({ a = "error timeout", b = "error expired", c = "cancelled ", d = "cancelled ",
        e = "error dependency" }, told)
    end)
    it("are not made when it moves on, is given back or retried", function()
      jq:enqueue({ name = "a", notify = URL })
      local job = jq:take("a")
      jq:release(job, 0)
      job = jq:take("a")
      jq:call("finish", { worker = "worker" }, { id = job.id, token = job.token, type = "success",
        move = { name = "b" } }, msgpack.NIL)
      assert.are.same({}, notices())
      jq:succeed(jq:take("b"))
      assert.are.same({ "b" }, { notices()[1].event.name })
    end)
  end)

  describe("of a namespace", function()
    it("are shown without their secrets", function()
      assert.are.same({ id = "w", url = URL, match = { name = "*" }, on = { "cancelled", "done", "error", "skipped" },
        secrets = 1 }, subscribe({ secrets = { SECRET } }))
      local documents = jq:call("webhooks", {})
      assert.are.equal(1, #documents)
      assert.is_nil(documents[1]:find("whsec", 1, true))
    end)
    it("match all jobs when nothing else is said", function()
      jq:call("subscribe", { id = "w", url = URL }, "")
      jq:enqueue("a")
      jq:succeed(jq:take("a"))
      assert.are.equal("w", notices()[1].id)
    end)
    it("keep secrets that are not given anew, and masters get them", function()
      subscribe({ secrets = { SECRET, OTHER } })
      assert.are.equal(2, subscribe({ url = "http://h/" }).secrets)
      local told = msgpack.unpack(jq:call("webhooks", { secrets = true })[1])
      assert.are.same({ "http://h/", { SECRET, OTHER } }, { told.url, told.secrets })
    end)
    it("match by what jobs are, arguments included", function()
      subscribe({ on = { "error" } }, { name = "mail.*", ["argument.to"] = "x" })
      local function ended(name, argument, outcome)
        jq:enqueue({ name = name, max_retry = 0 }, msgpack.pack(argument))
        jq[outcome](jq, jq:take(name))
      end
      ended("mail.a", { to = "x" }, "succeed")
      ended("mail.b", { to = "y" }, "fail")
      ended("other", { to = "x" }, "fail")
      assert.are.same({}, notices())
      ended("mail.c", { to = "x" }, "fail")
      assert.are.same({ "w", "mail.c" }, { notices()[1].id, notices()[1].event.name })
    end)
    it("are twenty at most, and take little room together", function()
      for i = 1, 20 do
        subscribe({ id = "w" .. i })
      end
      jq:refuses("FULL id: cannot create \"x\": there are 20 webhooks, the limit", "subscribe",
        { id = "x", url = URL }, msgpack.pack({ name = "a" }))
      local names = {}
      for i = 1, 900 do
        names[i] = "some name " .. i
      end
      jq:refuses("FULL match: the matchers of all webhooks together may have at most 16384 bytes", "subscribe",
        { id = "w1", url = URL }, msgpack.pack({ name = names }))
    end)
    it("have one that holds the secrets of what jobs ask for themselves", function()
      assert.are.same({ id = "notify", secrets = 1 },
        msgpack.unpack(jq:call("subscribe", { id = "notify", secrets = { SECRET } })))
      jq:enqueue("a")
      jq:succeed(jq:take("a"))
      assert.are.same({}, notices())
      jq:refuses("INVALID url: notify takes only secrets, which sign what jobs notify", "subscribe",
        { id = "notify", url = URL })
    end)
    it("are in the trail without secrets", function()
      subscribe({ actor = "ann", secrets = { SECRET } })
      local entry = msgpack.unpack(jq:call("trail", {})[2])
      assert.are.same({ "ann", "subscribe", "w", { url = URL, match = { name = "*" } } },
        { entry.actor, entry.what, entry.on, entry.change })
    end)
  end)

  describe("a notification", function()
    it("is scheduled for this moment, wakes who waits for it, and is a job like any other", function()
      jq:pick({ queues = "jq.webhooks", worker = "m", wait = { on = "c", ms = 60000 } })
      jq:enqueue({ name = "a", notify = URL })
      jq:succeed(jq:take("a"))
      assert.are.equal(1, jq:redis("EXISTS", jq.name .. ":wake:c"))
      local job = jq:take("jq.webhooks")
      assert.are.same({ "jq.webhooks", URL, 30 }, { job.name, job.webhook.url, job.timeout })
      assert.are.equal(20, jq:get(job.id).max_retry)
      assert.are.equal("retrying", jq:fail(job))
    end)
    it("cannot be made by enqueueing, nor changed", function()
      jq:refuses("INVALID jobs[0].webhook: unknown field", "enqueue",
        { name = "jq.webhooks", webhook = { id = "w" } }, msgpack.NIL)
      jq:enqueue({ name = "a", notify = URL })
      jq:succeed(jq:take("a"))
      local id = msgpack.unpack(jq:call("jobs", { where = { queue = "jq.webhooks" } })[2]).id
      local before = jq:get(id).webhook
      assert.are.same({ "scheduled" }, jq:call("change", { id = id, priority = 1 }, msgpack.pack({ id = "x" })))
      assert.are.same(before, jq:get(id).webhook)
    end)
  end)

  it("show no secret of a URL that is refused", function()
    jq:refuses('INVALID jobs[0].notify: expected an http or https URL of at most 2000 bytes, without user and #, got '
      .. '"http://***@h/?***"', "enqueue", { name = "a", notify = "http://u:p@h/?x=secret" }, msgpack.NIL)
  end)
end)
