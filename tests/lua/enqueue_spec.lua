local keys_of = require "support.keys"
local msgpack = require "support.msgpack"
local space = require "support.space"
local specs = require "support.specs"

local NIL = msgpack.NIL
local NAME = "text of 1 to 255 bytes, valid UTF-8, no control characters"

describe("enqueue", function()
  local jq
  before_each(function()
    jq = space.new()
  end)
  after_each(function()
    jq:close()
  end)
  local function current()
    return jq
  end

  describe("a job", function()
    it("is queued", function()
      assert.are.equal("queued", jq:status(jq:enqueue("mail")))
    end)

    it("is answered with its id and that it was created", function()
      local reply = jq:call("enqueue", { name = "mail" }, NIL)
      assert.are.equal(2, #reply)
      assert.is_truthy(reply[1]:match("^[0-9a-f]+$"))
      assert.are.equal(14, #reply[1])
      assert.are.equal(1, reply[2])
    end)

    it("waits in the queue of its name", function()
      assert.are.equal("mail", jq:get(jq:enqueue("mail")).queue)
    end)

    it("waits in the queue it names", function()
      local document = jq:get(jq:enqueue({ name = "mail", queue = "slow" }))
      assert.are.equal("mail", document.name)
      assert.are.equal("slow", document.queue)
      assert.are.same({}, jq:pick_ids("mail"))
    end)

    it("has the defaults of the protocol", function()
      local document = jq:get(jq:enqueue("mail"))
      assert.are.same({ 0, 10, 30, false, 0, 0 }, { document.priority, document.max_retry, document.timeout,
        document.keep_result, document.attempt, document.retry_count })
    end)

    it("remembers when it was created", function()
      assert.are.equal(space.START_MS, jq:get(jq:enqueue("mail")).created_ms)
    end)

    it("takes every field at its limits", function()
      for _, spec in ipairs({
        { name = "n", priority = -2147483648 }, { name = "n", priority = 2147483647 },
        { name = "n", max_retry = 0 }, { name = "n", max_retry = 2147483647 },
        { name = "n", timeout = 0.001 }, { name = "n", timeout = 4000000 },
        { name = "n", retry_base = 0 }, { name = "n", retry_base = 1e10 },
        { name = "n", retry_cap = 0 }, { name = "n", retry_cap = 1e10 },
        { name = "n", retry_jitter = 0 }, { name = "n", retry_jitter = 1 },
        { name = "n", keep_result = true }, { name = ("n"):rep(255) }, { name = "n", queue = ("q"):rep(255) },
      }) do
        local document = jq:get(jq:enqueue(spec))
        for field, value in pairs(spec) do
          assert.are.equal(value, document[field])
        end
      end
    end)

    it("may have a name of any language", function()
      local name = "Grüße, 世界 😀"
      assert.are.equal(name, jq:get(jq:enqueue(name)).name)
    end)

    it("may be named with a * when its queue is given", function()
      assert.are.equal("a*b", jq:get(jq:enqueue({ name = "a*b", queue = "q" })).name)
    end)

    it("rounds a timeout up to a whole millisecond", function()
      assert.are.equal(0.002, jq:get(jq:enqueue({ name = "n", timeout = 0.0011 })).timeout)
    end)
  end)

  describe("an argument", function()
    local function survives(blob)
      jq:enqueue("mail", blob)
      assert.are.equal(blob, jq:take("mail").blob)
    end

    it("comes back byte for byte", function()
      survives(msgpack.pack({ 1, 2.5, "text", { deep = { true } } }))
    end)
    it("may hold bin, ext and numbers beyond 2^53", function()
      survives("\147\196\3abc\212\1x\207\255\255\255\255\255\255\255\255")
    end)
    it("keeps integers in a wider form than they need", function()
      survives("\211\0\0\0\0\0\0\0\1")
    end)
    it("may be megabytes long", function()
      survives("\219\0\48\0\0" .. ("x"):rep(0x300000))
    end)
    it("is not looked at", function()
      survives("\193 no MessagePack at all")
    end)
    it("is part of the job's document", function()
      local id = jq:enqueue("mail", msgpack.pack({ to = "a@b.c" }))
      assert.are.same({ to = "a@b.c" }, jq:get(id).argument)
    end)
  end)

  describe("a batch", function()
    it("is answered in order", function()
      local ids = jq:enqueue_all("a", "b", "c")
      assert.are.same({ "a", "b", "c" }, { jq:get(ids[1]).name, jq:get(ids[2]).name, jq:get(ids[3]).name })
    end)
    it("has ids in order of enqueueing", function()
      local ids = jq:enqueue_many({ name = "a" }, 1500)
      for i = 2, #ids do
        assert.is_true(ids[i - 1] < ids[i])
      end
    end)
    it("may be 1000 jobs", function()
      local arguments = {}
      for i = 1, 2000, 2 do
        arguments[i], arguments[i + 1] = { name = "a" }, NIL
      end
      assert.are.equal(2000, #jq:call_list("enqueue", arguments))
    end)
    it("may not be 1001 jobs", function()
      local arguments = {}
      for i = 1, 2002, 2 do
        arguments[i], arguments[i + 1] = { name = "a" }, NIL
      end
      jq:refuses_list("INVALID jobs: expected 1 to 1000 specs, each with its argument, got 1001", "enqueue",
        arguments)
    end)
    it("may not be empty", function()
      jq:refuses("INVALID jobs: expected 1 to 1000 specs, each with its argument, got 0", "enqueue")
    end)
    it("with nothing but options is refused", function()
      jq:refuses("INVALID jobs: expected 1 to 1000 specs, each with its argument, got 0", "enqueue",
        { request = "r" })
    end)
    it("is refused whole for its last job", function()
      jq:refuses("INVALID jobs[2].priority: ", "enqueue", { name = "a" }, NIL, { name = "b", delay = 1 }, NIL,
        { name = "c", priority = "high" }, NIL)
    end)
    it("may spread over queues and states", function()
      jq:enqueue_all("a", { name = "a", delay = 1 }, "b", { name = "b", expires_in = 5 })
      assert.are.same({ queued = 1, scheduled = 1 }, jq:counts("a"))
      assert.are.same({ queued = 2 }, jq:counts("b"))
    end)
  end)

  describe("ids", function()
    it("stay in order when the clock is set back", function()
      local first = jq:enqueue("a")
      jq:pass(-3600)
      local second = jq:enqueue("a")
      jq:pass(1)
      local third = jq:enqueue("a")
      assert.is_true(first < second and second < third)
      assert.are.same({ first, second, third }, jq:pick_ids({ queues = "a", count = 5 }))
    end)
    it("stay in order when the clock jumps ahead and back", function()
      local first = jq:enqueue("a")
      jq:pass(10 * 365 * 86400)
      local second = jq:enqueue("a")
      jq:pass(-10 * 365 * 86400)
      local third = jq:enqueue("a")
      assert.is_true(first < second and second < third)
    end)
    it("are not given twice within a millisecond", function()
      local seen = {}
      for _ = 1, 50 do
        local id = jq:enqueue("a")
        assert.is_nil(seen[id])
        seen[id] = true
      end
    end)
    it("do not repeat when a failover lost the last of them", function()
      local id = jq:enqueue("a")
      local keys = keys_of(jq.name)
      local last = jq:redis("GET", keys.SEQ)
      jq:pass(0.001)
      local lost = jq:enqueue("a")
      jq:redis("SET", keys.SEQ, last)
      jq:pass(0.001)
      local later = jq:enqueue("a")
      assert.is_true(id < lost and lost < later)
    end)
  end)

  describe("delay", function()
    it("makes the job scheduled", function()
      local document = jq:get(jq:enqueue({ name = "a", delay = 1.5 }))
      assert.are.equal("scheduled", document.status)
      assert.are.equal(space.START_MS + 1500, document.due_ms)
    end)
    it("of 0 is none", function()
      assert.are.equal("queued", jq:status(jq:enqueue({ name = "a", delay = 0 })))
    end)
    it("holds the job back until its moment and no longer", function()
      local id = jq:enqueue({ name = "a", delay = 1.5 })
      jq:pass(1.499)
      assert.are.same({}, jq:pick_ids("a"))
      jq:pass(0.001)
      assert.are.same({ id }, jq:pick_ids("a"))
    end)
    it("does not change the job's place in the order", function()
      local delayed = jq:enqueue({ name = "a", delay = 1 })
      local later = jq:enqueue("a")
      jq:pass(1)
      assert.are.same({ delayed, later }, jq:pick_ids({ queues = "a", count = 2 }))
    end)
    it("may be 10^10 seconds", function()
      assert.are.equal(space.START_MS + 1e13, jq:get(jq:enqueue({ name = "a", delay = 1e10 })).due_ms)
    end)
  end)

  describe("run_at", function()
    it("is the same as a moment", function()
      local document = jq:get(jq:enqueue({ name = "a", run_at = space.START_MS / 1000 + 60 }))
      assert.are.equal("scheduled", document.status)
      assert.are.equal(space.START_MS + 60000, document.due_ms)
    end)
    it("in the past is now", function()
      assert.are.equal("queued", jq:status(jq:enqueue({ name = "a", run_at = 0 })))
      assert.are.equal("queued", jq:status(jq:enqueue({ name = "a", run_at = space.START_MS / 1000 })))
    end)
    it("and delay exclude each other", function()
      jq:refuses("INVALID jobs[0].delay: expected either delay or run_at, got both", "enqueue",
        { name = "a", run_at = 1, delay = 1 }, NIL)
    end)
  end)

  describe("expires_in", function()
    local function reason(id)
      local document = jq:get(id)
      return document.status, document.reason
    end

    it("ends a job that has not started by then", function()
      local id = jq:enqueue({ name = "a", expires_in = 10 })
      jq:pass(10)
      assert.are.same({}, jq:pick_ids("a"))
      assert.are.same({ "error", "expired" }, { reason(id) })
    end)
    it("leaves the job alone before", function()
      local id = jq:enqueue({ name = "a", expires_in = 10 })
      jq:pass(9.999)
      assert.are.same({ id }, jq:pick_ids("a"))
    end)
    it("is shown as a moment", function()
      assert.are.equal(space.START_MS + 10000, jq:get(jq:enqueue({ name = "a", expires_in = 10 })).expires_ms)
    end)
    it("ends a scheduled job, too", function()
      local id = jq:enqueue({ name = "a", expires_in = 10, delay = 20 })
      jq:pass(10)
      jq:settle()
      assert.are.same({ "error", "expired" }, { reason(id) })
    end)
    it("ends a job of a paused queue", function()
      local id = jq:enqueue({ name = "a", expires_in = 10 })
      jq:queue({ name = "a", paused = true })
      jq:pass(10)
      jq:settle()
      assert.are.same({ "error", "expired" }, { reason(id) })
    end)
    it("counts from enqueueing, however late the job became due", function()
      local id = jq:enqueue({ name = "a", expires_in = 10, delay = 9 })
      jq:pass(9)
      jq:settle()
      assert.are.equal("queued", jq:status(id))
      jq:pass(1)
      jq:settle()
      assert.are.equal("error", jq:status(id))
    end)
    it("ends a job that is due at the same moment", function()
      local id = jq:enqueue({ name = "a", expires_in = 10, delay = 10 })
      jq:pass(10)
      jq:settle()
      assert.are.same({ "error", "expired" }, { reason(id) })
    end)
    it("means nothing to a job that has started", function()
      local id = jq:enqueue({ name = "a", expires_in = 10 })
      jq:take("a")
      jq:pass(20)
      jq:settle()
      assert.are.equal("running", jq:status(id))
    end)
    it("means nothing to a retry", function()
      local id = jq:enqueue({ name = "a", expires_in = 10 })
      jq:fail(jq:take("a"))
      jq:pass(20)
      assert.are.same({ id }, jq:pick_ids("a"))
    end)
    it("means nothing to a job given back", function()
      local id = jq:enqueue({ name = "a", expires_in = 10 })
      jq:release(jq:take("a"))
      jq:pass(20)
      assert.are.same({ id }, jq:pick_ids("a"))
    end)
  end)

  describe("request", function()
    it("repeated gives the same reply and enqueues nothing", function()
      local first = jq:call("enqueue", { request = "r" }, { name = "a" }, NIL, { name = "b" }, NIL)
      local second = jq:unchanged(function()
        return jq:call("enqueue", { request = "r" }, { name = "a" }, NIL, { name = "b" }, NIL)
      end)
      assert.are.same(first, second)
    end)
    it("is remembered when the job has gone on", function()
      local first = jq:call("enqueue", { request = "r" }, { name = "a" }, NIL)
      jq:succeed(jq:take("a"))
      assert.are.same(first, jq:call("enqueue", { request = "r" }, { name = "a" }, NIL))
      assert.are.same({}, jq:pick_ids("a"))
    end)
    it("with other arguments is a conflict", function()
      jq:call("enqueue", { request = "r" }, { name = "a" }, NIL)
      jq:refuses("CONFLICT request: this token was used with other arguments", "enqueue", { request = "r" },
        { name = "b" }, NIL)
    end)
    it("with another argument blob is a conflict", function()
      jq:call("enqueue", { request = "r" }, { name = "a" }, NIL)
      jq:refuses("CONFLICT request", "enqueue", { request = "r" }, { name = "a" }, "\195")
    end)
    it("tells two batches apart that have the same bytes in a row", function()
      jq:call("enqueue", { request = "r" }, { name = "a" }, "\195\195")
      jq:refuses("CONFLICT request", "enqueue", { request = "r" }, { name = "a" }, "\195", { name = "a" },
        "\195")
    end)
    it("is remembered for request_ttl", function()
      local function enqueue()
        return jq:call("enqueue", { request = "r" }, { name = "a" }, NIL)[1]
      end
      local first = enqueue()
      jq:pass(599.999)
      assert.are.equal(first, enqueue())
      jq:pass(0.001)
      assert.are_not.equal(first, enqueue())
    end)
    it("leaves a call that was refused unused", function()
      jq:refuses("INVALID", "enqueue", { request = "r" }, { name = "" }, NIL)
      assert.are.equal(1, jq:call("enqueue", { request = "r" }, { name = "a" }, NIL)[2])
    end)
    it("that filled a queue repeats like any other", function()
      jq:queue({ name = "a", max_waiting = 1 })
      local first = jq:call("enqueue", { request = "r" }, { name = "a" }, NIL)
      assert.are.same(first, jq:call("enqueue", { request = "r" }, { name = "a" }, NIL))
    end)
    it("of another token enqueues again", function()
      local first = jq:call("enqueue", { request = "r" }, { name = "a" }, NIL)
      assert.are_not.same(first, jq:call("enqueue", { request = "s" }, { name = "a" }, NIL))
    end)
    it("is no concern of pick's tokens", function()
      jq:call("enqueue", { request = "r" }, { name = "a" }, NIL)
      assert.are.equal(1, #jq:pick({ queues = "a", request = "r" }))
    end)
    it("is remembered for a batch of 1000", function()
      local arguments = { { request = "r" } }
      for i = 2, 2001, 2 do
        arguments[i], arguments[i + 1] = { name = "a" }, NIL
      end
      local first = jq:call_list("enqueue", arguments)
      assert.are.same(first, jq:call_list("enqueue", arguments))
    end)

    specs.refused_values(it, current, "enqueue", function(value)
      return { { request = value }, { name = "a" }, NIL }
    end, {
      { "an empty token", "", "INVALID request: expected text of 1 to 200 bytes" },
      { "a token of 201 bytes", ("r"):rep(201), "INVALID request: expected text of 1 to 200 bytes" },
      { "a number as token", 1, "INVALID request: expected text of 1 to 200 bytes, got 1" },
    })
    it("takes a token of 200 bytes", function()
      assert.are.equal(1, jq:call("enqueue", { request = ("r"):rep(200) }, { name = "a" }, NIL)[2])
    end)
    it("is the only option", function()
      jq:refuses("INVALID options.requests: unknown field, did you mean request?", "enqueue",
        { requests = "r" }, { name = "a" }, NIL)
    end)
    it("is refused in options that are no map", function()
      jq:refuses("INVALID options: ", "enqueue", NIL, { name = "a" }, NIL)
    end)
  end)

  describe("max_waiting", function()
    it("refuses what a queue cannot hold", function()
      jq:queue({ name = "a", max_waiting = 2 })
      jq:enqueue_all("a", "a")
      jq:refuses('FULL jobs[0].queue: "a" may hold max_waiting 2 jobs that wait', "enqueue", { name = "a" },
        NIL)
    end)
    it("counts the batch itself, and refuses it whole", function()
      jq:queue({ name = "a", max_waiting = 2 })
      jq:refuses("FULL jobs[3].queue", "enqueue", { name = "a" }, NIL, { name = "b" }, NIL, { name = "a" },
        NIL, { name = "a" }, NIL)
    end)
    it("counts scheduled and retrying jobs", function()
      jq:queue({ name = "a", max_waiting = 2 })
      jq:enqueue("a")
      jq:fail(jq:take("a"))
      jq:enqueue({ name = "a", delay = 5 })
      jq:refuses("FULL", "enqueue", { name = "a" }, NIL)
    end)
    it("does not count running jobs", function()
      jq:queue({ name = "a", max_waiting = 1 })
      jq:enqueue("a")
      jq:take("a")
      jq:enqueue("a")
    end)
    it("of 0 is no limit", function()
      jq:queue({ name = "a", max_waiting = 1 })
      jq:queue({ name = "a", max_waiting = 0 })
      jq:enqueue_all("a", "a", "a")
    end)
    it("does not keep a failed job from coming back", function()
      jq:queue({ name = "a", max_waiting = 1 })
      jq:enqueue("a")
      local job = jq:take("a")
      jq:enqueue("a")
      assert.are.equal("retrying", jq:fail(job))
    end)
  end)

  local function with(field)
    return function(value)
      return { { name = "a", [field] = value }, NIL }
    end
  end

  describe("name", function()
    specs.refused_values(it, current, "enqueue", function(value)
      return { { name = value }, NIL }
    end, {
      { "a missing name", nil, "INVALID jobs[0].name: expected " .. NAME .. ", got nothing" },
      { "an empty name", "", "INVALID jobs[0].name: expected " .. NAME .. ', got ""' },
      { "a name of 256 bytes", ("n"):rep(256), "INVALID jobs[0].name: expected " .. NAME .. ", got " },
      { "a name of a megabyte", ("n"):rep(1048576), 'INVALID jobs[0].name: expected ' .. NAME .. ', got "'
        .. ("n"):rep(40) .. '" (1048576 bytes)' },
      { "a number as name", 7, "INVALID jobs[0].name: expected " .. NAME .. ", got 7" },
      { "a map as name", { a = 1 }, "INVALID jobs[0].name: expected " .. NAME .. ", got a map" },
      { "a line break in a name", "a\nb", "INVALID jobs[0].name: expected " .. NAME .. ', got "a?b"' },
      { "a zero byte in a name", "a\0b", "INVALID jobs[0].name: expected " .. NAME },
      { "DEL in a name", "a\127", "INVALID jobs[0].name: expected " .. NAME },
      { "broken UTF-8 in a name", "a\195", "INVALID jobs[0].name: expected " .. NAME },
      { "UTF-16 surrogates in a name", "\237\160\128", "INVALID jobs[0].name: expected " .. NAME },
      { "a name with a * that would be the queue's", "a*",
        "INVALID jobs[0].name: holds a *, so it cannot be the queue's name too: give a queue" },
    })
  end)

  describe("queue", function()
    specs.refused_values(it, current, "enqueue", with("queue"), {
      { "an empty queue", "", "INVALID jobs[0].queue: expected " .. NAME },
      { "a queue that is a pattern", "mail.*", "INVALID jobs[0].queue: expected " .. NAME
        .. ', no *, got "mail.*"' },
      { "a queue of 256 bytes", ("q"):rep(256), "INVALID jobs[0].queue: expected " .. NAME },
      { "true as queue", true, "INVALID jobs[0].queue: expected " .. NAME .. ", no *, got true" },
    })
  end)

  describe("priority", function()
    local expected = "INVALID jobs[0].priority: expected an integer from -2147483648 to 2147483647, got "
    specs.refused_values(it, current, "enqueue", with("priority"), {
      { "a priority above 32 bits", 2147483648, expected .. "2147483648" },
      { "a priority below 32 bits", -2147483649, expected .. "-2147483649" },
      { "half a priority", 1.5, expected .. "1.5" },
      { "infinite priority", msgpack.INFINITY, expected .. "inf" },
      { "a priority that is no number", msgpack.NAN, expected },
      { "text as priority", "1", expected .. '"1"' },
      { "nil as priority's text", "nil", expected .. '"nil"' },
    })
  end)

  describe("max_retry", function()
    local expected = "INVALID jobs[0].max_retry: expected an integer from 0 to 2147483647, got "
    specs.refused_values(it, current, "enqueue", with("max_retry"), {
      { "negative retries", -1, expected .. "-1" },
      { "half a retry", 0.5, expected .. "0.5" },
      { "infinite retries", msgpack.INFINITY, expected .. "inf" },
      { "too many retries", 2147483648, expected .. "2147483648" },
      { "true as retries", true, expected .. "true" },
    })
  end)

  describe("keep_result", function()
    specs.refused_values(it, current, "enqueue", with("keep_result"), {
      { "1 as keep_result", 1, "INVALID jobs[0].keep_result: expected true or false, got 1" },
      { "text as keep_result", "true", 'INVALID jobs[0].keep_result: expected true or false, got "true"' },
    })
  end)

  describe("timeout", function()
    local expected = "INVALID jobs[0].timeout: expected seconds from 0.001 to 4000000, got "
    specs.refused_values(it, current, "enqueue", with("timeout"), {
      { "a timeout of 0", 0, expected .. "0" },
      { "a negative timeout", -1, expected .. "-1" },
      { "a timeout above its limit", 4000001, expected .. "4000001" },
      { "an infinite timeout", msgpack.INFINITY, expected .. "inf" },
      { "a timeout that is no number", msgpack.NAN, expected },
      { "a list as timeout", { 1 }, expected .. "a list" },
    })
  end)

  for _, field in ipairs({ "delay", "run_at", "retry_base", "retry_cap" }) do
    describe(field, function()
      local expected = "INVALID jobs[0]." .. field .. ": expected "
      specs.refused_values(it, current, "enqueue", with(field), {
        { "less than 0", -0.001, expected },
        { "more than 10^10", 1.1e10, expected },
        { "what is no number", msgpack.NAN, expected },
        { "infinity", msgpack.INFINITY, expected },
        { "minus infinity", msgpack.MINUS_INFINITY, expected },
        { "text", "1", expected },
      })
    end)
  end

  describe("expires_in", function()
    local expected = "INVALID jobs[0].expires_in: expected seconds from 0.001 to 10^10, got "
    specs.refused_values(it, current, "enqueue", with("expires_in"), {
      { "0", 0, expected .. "0" },
      { "infinity", msgpack.INFINITY, expected .. "inf" },
      { "what is no number", msgpack.NAN, expected },
      { "text", "1", expected .. '"1"' },
    })
  end)

  describe("retry_jitter", function()
    local expected = "INVALID jobs[0].retry_jitter: expected a number from 0 to 1, got "
    specs.refused_values(it, current, "enqueue", with("retry_jitter"), {
      { "more than 1", 1.01, expected .. "1.01" },
      { "less than 0", -1, expected .. "-1" },
      { "what is no number", msgpack.NAN, expected },
    })
  end)

  describe("a spec", function()
    specs.refused_values(it, current, "enqueue", function(value)
      return { value, NIL }
    end, {
      { "no bytes", "", "INVALID jobs[0]: expected one MessagePack map, got no bytes" },
      { "nil", NIL, "INVALID jobs[0]: expected one MessagePack map, got nil" },
      { "a list", { "name", "a" }, "INVALID jobs[0]: expected a map with text as keys, got the key 1" },
      { "text", "\164name", 'INVALID jobs[0]: expected one MessagePack map, got "name"' },
      { "truncated MessagePack", "\129\164name\164mai", "INVALID jobs[0]: not MessagePack" },
      { "two maps", "\128\128", "INVALID jobs[0]: expected one MessagePack map, got more bytes" },
      { "a map with a huge declared size", "\223\255\255\255\255", "INVALID jobs[0]: not MessagePack" },
      { "text with a huge declared size", "\129\164name\219\255\255\255\255a",
        "INVALID jobs[0]: not MessagePack" },
      { "100,000 levels of nesting", ("\145"):rep(100000) .. NIL, "INVALID jobs[0]: not MessagePack" },
      { "bin as a name", { name = msgpack.bin("a") }, "INVALID jobs[0]: not MessagePack, or with bin, ext" },
      { "bin as a key", msgpack.raw("\129\196\4name\161a"),
        "INVALID jobs[0]: not MessagePack, or with bin, ext" },
      { "an unknown field", { name = "a", colour = "red" },
        "INVALID jobs[0].colour: unknown field, expected one of name, queue, priority, max_retry" },
      { "a field of other letters' case, with a suggestion", { name = "a", Priority = 1 },
        "INVALID jobs[0].Priority: unknown field, did you mean priority?" },
      { "a mistyped field, with a suggestion", { name = "a", max_retrys = 1 },
        "INVALID jobs[0].max_retrys: unknown field, did you mean max_retry?" },
      { "a field with a very long name", { name = "a", [("x"):rep(5000)] = 1 },
        "INVALID jobs[0]." .. ("x"):rep(40) },
    })

    it("is named by its place", function()
      jq:refuses("INVALID jobs[1]: expected one MessagePack map", "enqueue", { name = "a" }, NIL, NIL, NIL)
    end)
    it("without an argument is taken for options", function()
      jq:refuses("INVALID options.name: unknown field", "enqueue", { name = "a" })
    end)
    it("with an argument of no bytes is refused", function()
      jq:refuses("INVALID jobs[1].argument: expected one MessagePack value, got no bytes", "enqueue",
        { name = "a" }, NIL, { name = "a" }, "")
    end)
  end)

  specs.namespace(it, current, "enqueue", { { name = "a" }, NIL })
end)
