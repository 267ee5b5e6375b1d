local msgpack = require "support.msgpack"
local space = require "support.space"
local specs = require "support.specs"

local NIL = msgpack.NIL
local ID = space.UNKNOWN_ID

describe("finish", function()
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
  local function taken(spec)
    jq:enqueue(spec or "a")
    return jq:take("a")
  end
  local function outcome(job, more)
    local one = { id = job.id, token = job.token, type = "success" }
    for field, value in pairs(more or {}) do
      one[field] = value
    end
    return one
  end

  describe("a success", function()
    it("makes the job done", function()
      local job = taken()
      jq:pass(2)
      assert.are.equal("done", jq:succeed(job))
      local document = jq:get(job.id)
      assert.are.same({ "done", space.START_MS + 2000 }, { document.status, document.ended_ms })
    end)
    it("keeps its result when the job asks for that", function()
      local job = taken({ name = "a", keep_result = true })
      jq:succeed(job, "\147\1\2\3")
      assert.are.same({ "done", "\147\1\2\3" }, jq:call("result", job.id))
    end)
    it("keeps a result byte for byte, bin and ext and all", function()
      local job = taken({ name = "a", keep_result = true })
      local blob = "\147\196\3abc\212\1x\207\255\255\255\255\255\255\255\255"
      jq:succeed(job, blob)
      assert.are.equal(blob, jq:call("result", job.id)[2])
    end)
    it("drops its result when the job does not", function()
      local job = taken()
      jq:succeed(job, "\147\1\2\3")
      assert.are.same({ "done" }, jq:call("result", job.id))
      assert.is_nil(jq:get(job.id).result)
    end)
    it("after a failure shows the error of that failure until then", function()
      local job = taken({ name = "a", retry_base = 0, keep_result = true })
      jq:fail(job, { message = "no" }, "\163bad")
      assert.are.equal("bad", jq:get(job.id).error)
      jq:succeed(jq:take("a"), "\164good")
      assert.are.equal("good", jq:get(job.id).result)
      assert.is_nil(jq:get(job.id).error)
    end)
    it("counts when the lease ran out and nobody has found that yet", function()
      local job = taken({ name = "a", timeout = 1 })
      jq:pass(2)
      assert.are.equal("done", jq:succeed(job))
    end)
    it("is no retry spent", function()
      local job = taken()
      jq:succeed(job)
      assert.are.equal(0, jq:get(job.id).retry_count)
    end)
  end)

  describe("a failure", function()
    it("makes the job retrying", function()
      local job = taken({ name = "a", retry_jitter = 0 })
      assert.are.equal("retrying", jq:fail(job))
      local document = jq:get(job.id)
      assert.are.same({ "retrying", 1, space.START_MS + 1000 },
        { document.status, document.retry_count, document.due_ms })
    end)
    it("is kept with its reason, message and error", function()
      local job = taken()
      jq:fail(job, { reason = "timeout", message = "too slow" }, "\147\1\2\3")
      local document = jq:get(job.id)
      assert.are.same({ "timeout", "too slow", { 1, 2, 3 } }, { document.reason, document.message,
        document.error })
    end)
    it("has reason other and no message when nothing is said", function()
      local job = taken()
      jq:fail(job)
      local document = jq:get(job.id)
      assert.are.same({ "other", "" }, { document.reason, document.message })
    end)
    it("may have a message of 65536 bytes", function()
      local job = taken()
      jq:fail(job, { message = ("m"):rep(65536) })
      assert.are.equal(65536, #jq:get(job.id).message)
    end)
    it("is replaced by the next one", function()
      local job = taken({ name = "a", retry_base = 0 })
      jq:fail(job, { message = "first" }, "\1")
      jq:fail(jq:take("a"), { message = "second" }, "\2")
      local document = jq:get(job.id)
      assert.are.same({ "second", 2 }, { document.message, document.error })
    end)
    it("that is not to be retried ends the job", function()
      local job = taken()
      assert.are.equal("error", jq:fail(job, { should_retry = false }))
      assert.are.same({ "error", 1 }, { jq:status(job.id), jq:get(job.id).retry_count })
    end)
    it("of the last retry ends the job", function()
      jq:enqueue({ name = "a", max_retry = 2, retry_base = 0 })
      local states = {}
      for i = 1, 3 do
        states[i] = jq:fail(jq:take("a"))
      end
      assert.are.same({ "retrying", "retrying", "error" }, states)
    end)
    it("of a job without retries ends it", function()
      assert.are.equal("error", jq:fail(taken({ name = "a", max_retry = 0 })))
    end)
    it("shows when the job ended", function()
      local job = taken({ name = "a", max_retry = 0 })
      jq:pass(3)
      jq:fail(job)
      assert.are.equal(space.START_MS + 3000, jq:get(job.id).ended_ms)
    end)
    it("of an errored job keeps its error as long as its record", function()
      local job = taken({ name = "a", max_retry = 0, keep_result = true })
      jq:fail(job, { message = "no" }, "\163bad")
      jq:pass(86400)
      jq:settle()
      assert.are.equal("bad", jq:get(job.id).error)
      assert.are.same({ "error" }, jq:call("result", job.id))
    end)
  end)

  describe("the backoff", function()
    local function delays(spec, count)
      spec.name = "a"
      local id = jq:enqueue(spec)
      local seen = {}
      for i = 1, count do
        jq:fail(jq:take("a"))
        seen[i] = jq:get(id).due_ms - jq.now_ms
        jq:set_clock(jq:get(id).due_ms)
      end
      return seen
    end

    it("doubles with each failure", function()
      assert.are.same({ 1000, 2000, 4000, 8000 }, delays({ retry_jitter = 0 }, 4))
    end)
    it("has the job's own base", function()
      assert.are.same({ 500, 1000, 2000 }, delays({ retry_jitter = 0, retry_base = 0.5 }, 3))
    end)
    it("ends at the job's own cap", function()
      assert.are.same({ 1000, 2000, 3000, 3000 }, delays({ retry_jitter = 0, retry_cap = 3 }, 4))
    end)
    it("ends at the namespace's cap, however often the job failed", function()
      local seen = delays({ retry_jitter = 0, retry_base = 3000, max_retry = 40 }, 5)
      assert.are.same({ 3000000, 3600000, 3600000, 3600000, 3600000 }, seen)
    end)
    it("has the namespace's settings", function()
      jq:set({ retry_base = 2, retry_cap = 5, retry_jitter = 0 })
      assert.are.same({ 2000, 4000, 5000 }, delays({}, 3))
    end)
    it("of base 0 is none, however often the job failed", function()
      assert.are.same({ 0, 0, 0 }, delays({ retry_base = 0 }, 3))
    end)
    it("does not overflow after a thousand failures", function()
      local seen = delays({ retry_jitter = 0, retry_cap = 10, max_retry = 2000 }, 1100)
      assert.are.equal(10000, seen[1100])
    end)
    it("is shortened by the jitter and never lengthened", function()
      jq:enqueue_many({ name = "a", retry_base = 100, retry_jitter = 0.5 }, 100)
      local least, most = math.huge, 0
      for _, job in ipairs(jq:pick({ queues = "a", count = 100 })) do
        jq:fail(job)
        local delay = jq:get(job.id).due_ms - jq.now_ms
        least, most = math.min(least, delay), math.max(most, delay)
      end
      assert.is_true(least >= 50000 and least < 60000)
      assert.is_true(most <= 100000 and most > 90000)
    end)
    it("may be anything down to 0 with a jitter of 1", function()
      jq:enqueue_many({ name = "a", retry_base = 100, retry_jitter = 1 }, 100)
      local least = math.huge
      for _, job in ipairs(jq:pick({ queues = "a", count = 100 })) do
        jq:fail(job)
        least = math.min(least, jq:get(job.id).due_ms - jq.now_ms)
      end
      assert.is_true(least >= 0 and least < 10000)
    end)
  end)

  describe("finished_at", function()
    it("is kept as given", function()
      local job = taken()
      jq:succeed(job, NIL, { finished_at = "2026-01-31T12:00:00.123+01:00" })
      assert.are.equal("2026-01-31T12:00:00.123+01:00", jq:get(job.id).finished_at)
    end)
    it("is kept for a failure", function()
      local job = taken()
      jq:fail(job, { finished_at = "2026-01-31T12:00:00Z" })
      assert.are.equal("2026-01-31T12:00:00Z", jq:get(job.id).finished_at)
    end)
    it("belongs to the last outcome", function()
      local job = taken({ name = "a", retry_base = 0 })
      jq:fail(job, { finished_at = "2026-01-31T12:00:00Z" })
      jq:succeed(jq:take("a"))
      assert.is_nil(jq:get(job.id).finished_at)
    end)
    for _, text in ipairs({ "2026-01-31T12:00Z", "2024-02-29T23:59:60Z", "2026-01-31t12:00:00z",
      "2026-01-31 12:00:00,5-0330", "2000-02-29T00:00:00+00:00" }) do
      it("may be " .. text, function()
        local job = taken()
        jq:succeed(job, NIL, { finished_at = text })
        assert.are.equal(text, jq:get(job.id).finished_at)
      end)
    end
    for _, text in ipairs({ "", "now", "2026-01-31", "2026-01-31T12:00:00", "2026-02-30T12:00:00Z",
      "2025-02-29T12:00:00Z", "1900-02-29T12:00:00Z", "2026-13-01T12:00:00Z", "2026-00-01T12:00:00Z",
      "2026-01-00T12:00:00Z", "2026-01-31T24:00:00Z", "2026-01-31T12:60:00Z", "2026-01-31T12:00:61Z",
      "2026-01-31T12:00:00+24:00", "2026-01-31T12:00:00+01:60", "2026-01-31T12:00:00Zz",
      "2026-01-31T12:00:00." .. ("0"):rep(40) .. "Z", "2026-01-31T12:00:00.Z" }) do
      it("may not be " .. (text == "" and "empty" or text), function()
        jq:refuses("INVALID outcomes[0].finished_at: expected a time in ISO 8601 with offset or Z", "finish",
          { worker = "w" }, outcome(taken(), { finished_at = text }), NIL)
      end)
    end
  end)

  describe("repeated", function()
    it("a success gives the same answer and changes nothing", function()
      local job = taken({ name = "a", keep_result = true })
      jq:succeed(job, "\1")
      jq:pass(1)
      assert.are.equal("done", jq:unchanged(function()
        return jq:succeed(job, "\2")
      end))
      assert.are.same({ "done", "\1" }, jq:call("result", job.id))
    end)
    it("a failure gives the same answer and changes nothing", function()
      local job = taken()
      jq:fail(job, { message = "no" })
      jq:pass(0.1)
      assert.are.equal("retrying", jq:unchanged(function()
        return jq:fail(job, { message = "no" })
      end))
    end)
    it("the last failure gives the same answer and changes nothing", function()
      local job = taken({ name = "a", max_retry = 0 })
      jq:fail(job)
      assert.are.equal("error", jq:unchanged(function()
        return jq:fail(job)
      end))
    end)
    it("a failure gives the same answer when the next attempt runs already", function()
      local job = taken({ name = "a", retry_base = 0 })
      jq:fail(job)
      jq:take("a")
      assert.are.equal("retrying", jq:unchanged(function()
        return jq:fail(job)
      end))
    end)
    it("a success as a failure is LOST", function()
      local job = taken()
      jq:succeed(job)
      assert.are.equal("LOST", jq:unchanged(function()
        return jq:fail(job)
      end))
    end)
    it("a failure as a success is LOST", function()
      local job = taken()
      jq:fail(job)
      assert.are.equal("LOST", jq:unchanged(function()
        return jq:succeed(job)
      end))
    end)
    it("in one call gives the same answer twice", function()
      local job = taken()
      assert.are.same({ "done", "done" },
        jq:call("finish", { worker = "w" }, outcome(job), NIL, outcome(job), NIL))
      assert.are.same({ done = 1 }, jq:counts("a"))
    end)
    it("as success and failure in one call, the first counts", function()
      local job = taken()
      assert.are.same({ "done", "LOST" },
        jq:call("finish", { worker = "w" }, outcome(job), NIL, outcome(job, { type = "failure" }), NIL))
    end)
  end)

  describe("an attempt that is over", function()
    it("is LOST when its lease ran out", function()
      local job = taken({ name = "a", timeout = 1 })
      jq:pass(1)
      jq:tick()
      assert.are.equal("LOST", jq:unchanged(function()
        return jq:succeed(job)
      end))
    end)
    it("is LOST to a failure when its lease ran out", function()
      local job = taken({ name = "a", timeout = 1 })
      jq:pass(1)
      jq:tick()
      assert.are.equal("LOST", jq:fail(job))
    end)
    it("is LOST when another attempt runs", function()
      local job = taken()
      jq:release(job)
      local again = jq:take("a")
      assert.are.equal("LOST", jq:unchanged(function()
        return jq:succeed(job)
      end))
      assert.are.equal("done", jq:succeed(again))
    end)
    it("is LOST when it never began", function()
      local job = taken()
      job.token = job.token:gsub("^1", "7")
      assert.are.equal("LOST", jq:succeed(job))
    end)
    it("is LOST for a job that waits", function()
      assert.are.equal("LOST", jq:succeed({ id = jq:enqueue("a"), attempt = 1 }))
    end)
    it("is CANCELLED when the job was cancelled while it ran", function()
      local job = taken()
      jq:cancel(job.id)
      assert.are.equal("CANCELLED", jq:unchanged(function()
        return jq:succeed(job)
      end))
      assert.are.equal("CANCELLED", jq:fail(job))
    end)
    it("is NOTFOUND for an unknown job", function()
      assert.are.equal("NOTFOUND", jq:succeed({ id = ID, attempt = 1 }))
    end)
    it("is NOTFOUND when the record is not kept", function()
      jq:set({ done_ttl = 0 })
      local job = taken()
      assert.are.equal("done", jq:succeed(job))
      assert.are.equal("NOTFOUND", jq:succeed(job))
    end)
  end)

  describe("many outcomes", function()
    it("each get their answer", function()
      jq:enqueue_all("a", "a", { name = "a", max_retry = 0 }, "a")
      local jobs = jq:pick({ queues = "a", count = 4 })
      jq:cancel(jobs[4].id)
      assert.are.same({ "done", "retrying", "error", "CANCELLED", "NOTFOUND" }, jq:call("finish",
        { worker = "w" }, outcome(jobs[1]), NIL, outcome(jobs[2], { type = "failure" }), NIL,
        outcome(jobs[3], { type = "failure" }), NIL, outcome(jobs[4]), NIL, { id = ID, token = "1-0123456789ab",
        type = "success" }, NIL))
    end)
    it("may be 1000", function()
      jq:enqueue_many({ name = "a" }, 1000)
      local arguments = { { worker = "w" } }
      for _, job in ipairs(jq:pick({ queues = "a", count = 1000 })) do
        arguments[#arguments + 1] = outcome(job)
        arguments[#arguments + 1] = NIL
      end
      assert.are.equal(1000, #jq:call_list("finish", arguments))
      assert.are.same({ done = 1000 }, jq:counts("a"))
    end)
    it("may not be 1001", function()
      local arguments = { { worker = "w" } }
      for i = 2, 2003 do
        arguments[i] = i % 2 == 0 and { id = ID, token = "1-0123456789ab", type = "success" } or NIL
      end
      jq:refuses_list("INVALID outcomes: expected 1 to 1000 outcomes, each with its blob, got 2002 arguments",
        "finish", arguments)
    end)
    it("are refused whole for the last of them", function()
      jq:enqueue_all("a", "a")
      local jobs = jq:pick({ queues = "a", count = 2 })
      jq:refuses("INVALID outcomes[1].type: ", "finish", { worker = "w" }, outcome(jobs[1]), NIL,
        outcome(jobs[2], { type = "maybe" }), NIL)
    end)
    it("may not be none without a pick", function()
      jq:refuses("INVALID outcomes: expected 1 to 1000 outcomes, each with its blob, got 0 arguments",
        "finish", { worker = "w" })
    end)
  end)

  describe("pick", function()
    local function finish_and_pick(spec, ...)
      local reply = jq:call("finish", { worker = "w", pick = spec }, ...)
      local answers = { unpack(reply, 1, select("#", ...) / 2) }
      return answers, space.picked(reply, #answers + 1)
    end

    it("fetches the next job in the same round trip", function()
      local ids = jq:enqueue_all("a", "a")
      local answers, jobs = finish_and_pick({ queues = "a" }, outcome(jq:take("a")), NIL)
      assert.are.same({ "done" }, answers)
      assert.are.same({ ids[2] }, space.ids(jobs))
      assert.are.equal("w", jq:get(ids[2]).worker_id)
    end)
    it("fetches the job itself when it is to be retried at once", function()
      local job = taken({ name = "a", retry_base = 0 })
      local _, jobs = finish_and_pick({ queues = "a" }, outcome(job, { type = "failure" }), NIL)
      assert.are.same({ job.id, 2 }, { jobs[1].id, jobs[1].attempt })
    end)
    it("answers next_ms alone when there is nothing", function()
      local answers, jobs = finish_and_pick({ queues = "a" }, outcome(taken()), NIL)
      assert.are.same({ "done" }, answers)
      assert.are.same({}, space.ids(jobs))
      assert.are.equal("number", type(jobs.next_ms))
    end)
    it("works without an outcome", function()
      local id = jq:enqueue("a")
      local answers, jobs = finish_and_pick({ queues = "a" })
      assert.are.same({}, answers)
      assert.are.same({ id }, space.ids(jobs))
    end)
    it("takes all that a pick takes", function()
      local ids = jq:enqueue_all("b", "a", "a")
      local _, jobs = finish_and_pick({ queues = { "a", "b" }, count = 5, order = "ordered", request = "r" })
      assert.are.same({ ids[2], ids[3], ids[1] }, space.ids(jobs))
    end)
    it("repeated with its outcomes gives the same answers and jobs", function()
      jq:enqueue_all("a", "a", "a")
      local job = jq:take("a")
      local function once()
        return { finish_and_pick({ queues = "a", request = "r" }, outcome(job), NIL) }
      end
      local first, again = once(), jq:unchanged(once)
      first[2].next_ms = 0 -- nobody has looked for more
      assert.are.same(first, again)
    end)
    it("ends the attempts first, so that a registered worker has its room", function()
      local worker = jq:register({ queues = "a", url = "http://w/" })
      jq:enqueue_all("a", "a")
      local job = jq:assign()[1]
      jq:call("finish", { worker = worker, pick = { queues = "a" } }, outcome(job), NIL)
      assert.are.same({ 1, "full" }, { jq:worker(worker).held, jq:worker(worker).state })
    end)
    it("of an unknown registered worker is refused, and so is the outcome", function()
      jq:refuses("NOTFOUND worker: ", "finish", { worker = space.UNKNOWN_WORKER, pick = { queues = "a" } },
        outcome(taken()), NIL)
    end)
    specs.refused_values(it, current, "finish", function(value)
      return { { worker = "w", pick = value }, outcome(taken()), NIL }
    end, {
      { "text", "a", 'INVALID pick: expected a map, got "a"' },
      { "a pick without queues", {}, "INVALID pick.queues: expected " },
      { "a pick of wrong queues", { queues = { "a", 1 } }, "INVALID pick.queues[1]: expected " },
      { "a pick of a wrong count", { queues = "a", count = 0 }, "INVALID pick.count: expected an integer" },
      { "a pick of a wrong order", { queues = "a", order = "x" }, "INVALID pick.order: expected " },
      { "a pick of a wrong request", { queues = "a", request = "" }, "INVALID pick.request: expected " },
      { "a pick of a wrong wait", { queues = "a", wait = { on = "c" } }, "INVALID pick.wait.ms: expected " },
      { "a pick with a worker", { queues = "a", worker = "w" }, "INVALID pick.worker: unknown field" },
      { "a pick with an unknown field", { queues = "a", counts = 1 },
        "INVALID pick.counts: unknown field, did you mean count?" },
    })
  end)

  describe("a registered worker", function()
    it("gives a sign of life", function()
      local worker = jq:register({})
      jq:enqueue("a")
      local job = jq:take({ worker = worker, queues = "a" })
      jq:pass(5)
      jq:call("finish", { worker = worker }, outcome(job), NIL)
      assert.are.equal(space.START_MS + 5000, jq:worker(worker).seen_ms)
    end)
    it("has room again", function()
      local worker = jq:register({ url = "http://w/" })
      jq:enqueue("a")
      local job = jq:assign()[1]
      jq:call("finish", { worker = worker }, outcome(job), NIL)
      assert.are.same({ 0, "ready" }, { jq:worker(worker).held, jq:worker(worker).state })
    end)
    it("may be another than the one that finishes", function()
      local worker = jq:register({ url = "http://w/" })
      jq:enqueue("a")
      local job = jq:assign()[1]
      jq:call("finish", { worker = "somebody" }, outcome(job), NIL)
      assert.are.equal(0, jq:worker(worker).held)
    end)
  end)

  local function with(field)
    return function(value)
      local one = { id = ID, token = "1-0123456789ab", type = "failure" }
      one[field] = value
      return { { worker = "w" }, one, NIL }
    end
  end
  local path = "INVALID outcomes[0]."

  specs.refused_values(it, current, "finish", with("id"), {
    { "a missing id", nil, path .. "id: expected a job id of 14 hexadecimal digits, got nothing" },
    { "a short id", "abc", path .. 'id: expected a job id of 14 hexadecimal digits, got "abc"' },
    { "an id of other letters", "0000000000zzzz", path .. "id: expected a job id of 14 hexadecimal digits" },
    { "a number as id", 1, path .. "id: expected a job id of 14 hexadecimal digits, got 1" },
  })
  local token = path .. "token: expected the token that came with the job, <attempt>-<digits>, got "
  specs.refused_values(it, current, "finish", with("token"), {
    { "a missing token", nil, token .. "nothing" },
    { "a number as token", 1, token .. "1" },
    { "an attempt without the rest", "1", token .. '"1"' },
    { "attempt 0", "0-0123456789ab", token .. '"0-0123456789ab"' },
    { "no attempt", "-0123456789ab", token .. '"-0123456789ab"' },
    { "other letters", "1-0123456789aB", token .. '"1-0123456789aB"' },
    { "more behind it", "1-0123456789ab ", token .. '"1-0123456789ab "' },
    { "a long token", "1-" .. ("0"):rep(22), token .. '"1-' .. ("0"):rep(22) .. '"' },
  })
  specs.refused_values(it, current, "finish", with("attempt"), {
    { "an attempt instead", 1, path .. "attempt: unknown field, did you mean token, which came with the job?" },
  })
  specs.refused_values(it, current, "finish", with("type"), {
    { "a missing type", nil, path },
    { "another type", "done", path .. 'type: expected "success" or "failure", got "done"' },
    { "a number as type", 1, path .. 'type: expected "success" or "failure", got 1' },
  })
  specs.refused_values(it, current, "finish", with("reason"), {
    { "another reason", "bored", path .. 'reason: expected "other" or "timeout", got "bored"' },
    { "the engine's own reason", "expired", path .. 'reason: expected "other" or "timeout", got "expired"' },
  })
  specs.refused_values(it, current, "finish", with("should_retry"), {
    { "1 as should_retry", 1, path .. "should_retry: expected true or false, got 1" },
  })
  specs.refused_values(it, current, "finish", with("message"), {
    { "a message of 65537 bytes", ("m"):rep(65537), path .. "message: expected text of at most 65536 bytes" },
    { "a map as message", { a = 1 }, path .. "message: expected text of at most 65536 bytes, got a map" },
  })
  specs.refused_values(it, current, "finish", with("finished_at"), {
    { "a number as finished_at", 1700000000, path .. "finished_at: expected a time in ISO 8601" },
  })
  specs.refused_values(it, current, "finish", with("should_retri"), {
    { "an unknown field, with a suggestion", true,
      path .. "should_retri: unknown field, did you mean should_retry?" },
  })
  for field, value in pairs({ reason = "other", should_retry = true, message = "m" }) do
    it("refuses " .. field .. " in a success", function()
      jq:refuses(path .. field .. ": only an outcome of type failure has it", "finish", { worker = "w" },
        { id = ID, token = "1-0123456789ab", type = "success", [field] = value }, NIL)
    end)
  end
  specs.refused_values(it, current, "finish", function(value)
    return { { worker = "w" }, value, NIL }
  end, {
    { "an outcome of no bytes", "", "INVALID outcomes[0]: expected one MessagePack map, got no bytes" },
    { "an outcome that is no map", NIL, "INVALID outcomes[0]: expected one MessagePack map, got nil" },
    { "a truncated outcome", "\131\162id", "INVALID outcomes[0]: not MessagePack" },
    { "two outcomes in one", "\128\128",
      "INVALID outcomes[0]: expected one MessagePack map, got more bytes" },
  })
  it("refuses an outcome without a blob", function()
    jq:refuses("INVALID outcomes: expected 1 to 1000 outcomes, each with its blob, got 1 arguments", "finish",
      { worker = "w" }, outcome(taken()))
  end)
  it("refuses a blob of no bytes", function()
    jq:refuses("INVALID outcomes[0].blob: expected one MessagePack value, got no bytes", "finish",
      { worker = "w" }, outcome(taken()), "")
  end)
  specs.refused_values(it, current, "finish", function(value)
    return { value, outcome(taken()), NIL }
  end, {
    { "a spec of no bytes", "", "INVALID spec: expected one MessagePack map, got no bytes" },
    { "a spec that is no map", NIL, "INVALID spec: expected one MessagePack map, got nil" },
    { "a spec without worker", {}, "INVALID worker: expected text of 1 to 255 bytes" },
    { "a spec with an empty worker", { worker = "" }, "INVALID worker: expected text of 1 to 255 bytes" },
    { "a spec with an unknown field", { worker = "w", picks = {} },
      "INVALID picks: unknown field, did you mean pick?" },
  })
  it("refuses a call without arguments", function()
    jq:refuses("INVALID spec: missing", "finish")
  end)
  specs.namespace(it, current, "finish", { { worker = "w" }, { id = ID, token = "1-0123456789ab", type = "success" },
    NIL })
end)
