local space = require "support.space"

describe("a job that is", function()
  local jq = space.each()

  -- How to get a job into a state; the second value is its attempt, where it has one.
  local ENTER = {
    queued = function(spec)
      spec.name = "a"
      return jq:enqueue(spec)
    end,
    scheduled = function(spec)
      spec.name, spec.delay = "a", spec.delay or 50
      return jq:enqueue(spec)
    end,
    running = function(spec)
      spec.name = "a"
      local id = jq:enqueue(spec)
      return id, jq:take("a")
    end,
    retrying = function(spec)
      spec.name, spec.retry_base, spec.retry_jitter = "a", 50, 0
      local id = jq:enqueue(spec)
      jq:fail(jq:take("a"))
      return id
    end,
    done = function(spec)
      spec.name = "a"
      local id = jq:enqueue(spec)
      jq:succeed(jq:take("a"))
      return id
    end,
    error = function(spec)
      spec.name = "a"
      local id = jq:enqueue(spec)
      jq:fail(jq:take("a"), { should_retry = false })
      return id
    end,
    cancelled = function(spec)
      spec.name = "a"
      local id = jq:enqueue(spec)
      jq:cancel(id)
      return id
    end,
  }

  local function pass_and_settle(seconds)
    return function()
      jq:pass(seconds)
      jq:settle()
    end
  end

  -- from, to, by what, how, further fields of the job
  local ALLOWED = {
    { "queued", "running", "a pick", function()
      jq:pick("a")
    end },
    { "queued", "running", "an assignment", function()
      jq:register({ url = "http://w/" })
      jq:assign()
    end },
    { "queued", "error", "expiry", pass_and_settle(5), { expires_in = 5 } },
    { "queued", "cancelled", "cancelling", function(id)
      jq:cancel(id)
    end },
    { "scheduled", "queued", "its time", pass_and_settle(50) },
    { "scheduled", "error", "expiry", pass_and_settle(5), { expires_in = 5 } },
    { "scheduled", "cancelled", "cancelling", function(id)
      jq:cancel(id)
    end },
    { "running", "done", "success", function(_, job)
      jq:succeed(job)
    end },
    { "running", "done", "success with a result", function(_, job)
      jq:succeed(job, "\5")
    end, { keep_result = true } },
    { "running", "retrying", "failure", function(_, job)
      jq:fail(job)
    end },
    { "running", "retrying", "a lapsed lease", pass_and_settle(5), { timeout = 5, retry_base = 50 } },
    { "running", "error", "the last failure", function(_, job)
      jq:fail(job)
    end, { max_retry = 0 } },
    { "running", "error", "a failure that is not to be retried", function(_, job)
      jq:fail(job, { should_retry = false })
    end },
    { "running", "error", "the last lapsed lease", pass_and_settle(5), { timeout = 5, max_retry = 0 } },
    { "running", "queued", "release", function(_, job)
      jq:release(job)
    end },
    { "running", "scheduled", "release with a delay", function(_, job)
      jq:release(job, 5)
    end },
    { "running", "blocked", "an outcome that waits for others", function(_, job)
      jq:succeed(job, nil, { resume = { depends = { jq:enqueue("b") } } })
    end },
    { "running", "cancelled", "cancelling", function(id)
      jq:cancel(id)
    end },
    { "retrying", "queued", "the end of its backoff", pass_and_settle(50) },
    { "retrying", "cancelled", "cancelling", function(id)
      jq:cancel(id)
    end },
    { "done", "gone", "its age", pass_and_settle(86400 + 3600 + 6) },
    { "error", "gone", "its age", pass_and_settle(2592000 + 6) },
    { "cancelled", "gone", "its age", pass_and_settle(86400 + 6) },
  }

  for _, case in ipairs(ALLOWED) do
    local from, to, by, how, fields = unpack(case)
    it(from .. " becomes " .. to .. " by " .. by, function()
      local spec = {}
      for field, value in pairs(fields or {}) do
        spec[field] = value
      end
      local id, job = ENTER[from](spec)
      assert.are.equal(from, jq:status(id))
      how(id, job)
      assert.are.equal(to, jq:status(id) or "gone")
      local counted = jq:counts("a")
      assert.are.same(to == "gone" and {} or { [to] = 1 }, counted)
    end)
  end

  --- What is said of an attempt.
  local SAID = {
    success = function(attempt)
      jq:succeed(attempt)
    end,
    failure = function(attempt)
      jq:fail(attempt)
    end,
    release = function(attempt)
      jq:release(attempt)
    end,
    heartbeat = function(attempt)
      jq:heartbeat(attempt)
    end,
  }

  local function is_not_changed(state, by, act)
    it(state .. " is not changed by " .. by, function()
      local id = ENTER[state]({})
      jq:unchanged(function()
        act(id)
      end)
    end)
  end

  -- What has ended stays as it is, whatever is said of it; what waits belongs to no worker.
  for _, state in ipairs({ "done", "error", "cancelled", "queued", "scheduled", "retrying" }) do
    local has_ended = state == "done" or state == "error" or state == "cancelled"
    for what, say in pairs(SAID) do
      is_not_changed(state, what .. (has_ended and "" or " of an attempt that never began"), function(id)
        say({ id = id, attempt = has_ended and 1 or 2 })
      end)
    end
    if has_ended then
      is_not_changed(state, "cancelling", function(id)
        jq:cancel(id)
      end)
    end
  end
end)
