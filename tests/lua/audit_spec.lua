local keys_of = require "support.keys"
local space = require "support.space"
local specs = require "support.specs"

describe("audit", function()
  local jq, keys
  before_each(function()
    jq = space.new()
    keys = keys_of(jq.name)
  end)
  after_each(function()
    jq:close()
  end)

  it("finds nothing in an empty namespace", function()
    assert.are.same({}, jq:audit())
  end)
  it("finds nothing in a busy namespace", function()
    jq:register({ url = "http://w/", max_jobs = 5 })
    jq:register({ queues = "a" })
    jq:enqueue_many({ name = "a", expires_in = 100, keep_result = true }, 50)
    jq:enqueue_many({ name = "b", delay = 5, expires_in = 3 }, 50)
    jq:assign()
    jq:sleep("sleeper", "c", "nothing")
    for i, job in ipairs(jq:pick({ queues = "*", count = 30 })) do
      if i % 3 == 0 then
        jq:succeed(job)
      elseif i % 3 == 1 then
        jq:fail(job)
      end
    end
    jq:pass(4)
    jq:tick(20)
    assert.are.same({}, jq:audit())
  end)
  it("goes step by step until its cursor is 0", function()
    jq:enqueue_many({ name = "a" }, 500)
    local cursor, steps = "0", 0
    repeat
      local reply = jq:call("audit", { cursor = cursor, count = 10 })
      assert.are.equal(1, #reply)
      cursor = reply[1]
      steps = steps + 1
    until cursor == "0"
    assert.is_true(steps > 10)
  end)
  it("changes nothing", function()
    jq:enqueue_many({ name = "a" }, 5)
    jq:unchanged(function()
      jq:audit()
    end)
  end)

  describe("finds", function()
    --- Some problem must hold all these words.
    local function finds(...)
      jq.is_corrupt = true
      local problems = jq:audit()
      for _, problem in ipairs(problems) do
        local has_all = true
        for _, words in ipairs({ ... }) do
          has_all = has_all and problem:find(words, 1, true) ~= nil
        end
        if has_all then
          return
        end
      end
      error("not found among: " .. table.concat(problems, "; "), 2)
    end
    local function set(letter, queue)
      return keys.SET .. letter .. ":" .. queue
    end

    it("a job that is missing in its set", function()
      local ids = jq:enqueue_all("a", "a")
      jq:redis("ZREM", set("q", "a"), ids[2])
      finds("job " .. ids[2] .. " is missing in its set")
    end)
    it("settings of its own that a queue knows nothing of", function()
      jq:queue("a")
      jq:redis("SET", keys.OWN_SETTINGS .. "a", "\129\1\5")
      finds("queue a has a wrong flag of settings of its own")
    end)
    it("settings of its own that a queue has lost", function()
      jq:queue({ name = "a", set = { done_max = 5 } })
      jq:redis("DEL", keys.OWN_SETTINGS .. "a")
      finds("queue a has a wrong flag of settings of its own")
    end)
    it("settings of a queue that is not there", function()
      jq:redis("SET", keys.OWN_SETTINGS .. "a", "\129\1\5")
      finds("settings of queue a are of no queue")
    end)
    it("a quiet worker that stands in its pool", function()
      local id = jq:register({ url = "http://w/" })
      jq:call("worker", { worker = id, request = "quiet" })
      local pool = jq:redis("HKEYS", keys.POOLS)[1]
      jq:redis("ZADD", keys.POOL .. pool, 0, id)
      finds("worker " .. id .. " stands wrongly in its pool")
    end)
    it("a job in a second set", function()
      local id = jq:enqueue("a")
      jq:redis("ZADD", set("d", "a"), 1, id)
      finds(id, "stands in set d")
    end)
    it("a job with another score than its priority", function()
      local ids = jq:enqueue_all("a", "a")
      jq:redis("ZADD", set("q", "a"), 7, ids[2])
      finds(ids[2], "has priority 0 and score 7")
    end)
    it("a job that is missing among those that expire", function()
      local id = jq:enqueue({ name = "a", expires_in = 5 })
      jq:redis("ZREM", keys.EXPIRING .. "a", id)
      finds(id, "is missing among those that expire")
    end)
    it("a job that stands among those that expire and does not", function()
      local id = jq:enqueue("a")
      jq:redis("ZADD", keys.EXPIRING .. "a", space.START_MS + 1e6, id)
      finds(id, "stands among those that expire, but does not")
    end)
    it("an unknown job among those that expire", function()
      jq:enqueue("a")
      jq:redis("ZADD", keys.EXPIRING .. "a", space.START_MS + 1e6, space.UNKNOWN_ID)
      finds("queue a expects " .. space.UNKNOWN_ID .. " to expire")
    end)
    it("a result that its job knows nothing of", function()
      local id = jq:enqueue("a")
      jq:redis("SET", keys.OUTCOME .. id, "x")
      finds(id, "wrong outcome flag")
    end)
    it("a result that is missing", function()
      local id = jq:enqueue({ name = "a", keep_result = true })
      jq:succeed(jq:take("a"), "\5")
      jq:redis("DEL", keys.OUTCOME .. id)
      finds(id, "wrong outcome flag")
    end)
    it("rare facts that are missing", function()
      local id = jq:enqueue("a")
      jq:fail(jq:take("a"), { message = "no" })
      jq:redis("DEL", keys.EXTRA .. id)
      finds(id, "wrong extra flag")
    end)
    it("a job that has lost its argument", function()
      local id = jq:enqueue("a")
      jq:redis("DEL", keys.ARGUMENT .. id)
      finds(id, "has lost its argument")
    end)
    it("an argument without a job", function()
      jq:redis("SET", keys.ARGUMENT .. space.UNKNOWN_ID, "x")
      finds(space.UNKNOWN_ID, "has no job")
    end)
    it("a result without a job", function()
      jq:redis("SET", keys.OUTCOME .. space.UNKNOWN_ID, "x")
      finds(space.UNKNOWN_ID, "has no job")
    end)
    it("rare facts without a job", function()
      jq:redis("SET", keys.EXTRA .. space.UNKNOWN_ID, "x")
      finds(space.UNKNOWN_ID, "has no job")
    end)
    it("a job that its worker does not hold", function()
      local worker = jq:register({ url = "http://w/" })
      local id = jq:enqueue("a")
      jq:assign()
      jq:redis("ZREM", keys.HELD .. worker, id)
      finds(id, "is missing among those its worker holds")
    end)
    it("a set that holds an unknown job", function()
      jq:enqueue("a")
      jq:redis("ZADD", set("q", "a"), 0, space.UNKNOWN_ID)
      finds("set q of queue a holds " .. space.UNKNOWN_ID)
    end)
    it("a set that holds a job of another queue", function()
      local ids = jq:enqueue_all("a", "b")
      jq:redis("ZADD", set("q", "a"), 0, ids[2])
      finds("set q of queue a holds " .. ids[2])
    end)
    it("a queue that has jobs and no record", function()
      jq:enqueue("a")
      jq:redis("DEL", keys.QUEUE .. "a")
      finds("queue a has jobs and no record")
    end)
    it("a queue that has a better job than its bound says", function()
      local ids = jq:enqueue_all("b", { name = "a", priority = 5 })
      jq:redis("ZADD", set("q", "a"), -1, ids[1])
      finds("queue a has a better job than its bound says")
    end)
    for letter, make in pairs({
      r = function()
        jq:enqueue("a")
        jq:take("a")
      end,
      s = function()
        jq:enqueue({ name = "a", delay = 50 })
      end,
      t = function()
        jq:enqueue({ name = "a", retry_base = 50 })
        jq:fail(jq:take("a"))
      end,
    }) do
      it("a queue whose set " .. letter .. " is due before its timer", function()
        make()
        local id = jq:redis("ZRANGE", set(letter, "a"), 0, 0)[1]
        jq:redis("ZADD", set(letter, "a"), 5, id)
        finds("set " .. letter .. " of queue a is noted as due at", "but is due at 5")
      end)
    end
    it("a queue whose jobs expire before its timer", function()
      local id = jq:enqueue({ name = "a", expires_in = 50 })
      jq:redis("ZADD", keys.EXPIRING .. "a", 5, id)
      finds("expiry of queue a is noted as due at")
    end)
    it("a queue that is missing among the names", function()
      jq:enqueue_all("a", "b")
      jq:redis("ZREM", keys.QUEUE_NAMES, "a")
      finds("queue a", "is missing among the names")
    end)
    it("a queue whose timer is noted too late", function()
      jq:enqueue({ name = "a", delay = 50 })
      local member = jq:redis("ZRANGE", keys.DUE, 0, 0)[1]
      jq:redis("ZADD", keys.DUE, space.START_MS + 1e9, member)
      finds("wa is noted as due at")
    end)
    it("a queue whose timer is not noted", function()
      jq:enqueue({ name = "a", delay = 50 })
      jq:redis("DEL", keys.DUE)
      finds("wa is noted as due at")
    end)
    it("a queue that is not where it belongs in the index of queues", function()
      jq:enqueue_all("a", "b")
      local member = jq:redis("ZRANGE", keys.HEADS .. "*", 0, 0)[1]
      jq:redis("ZADD", keys.HEADS .. "*", 9, member)
      finds("queue a is not where it belongs in the index of queues")
    end)
    it("a queue that is not in the index of queues", function()
      jq:enqueue_all("a", "b")
      jq:redis("ZPOPMIN", keys.HEADS .. "*")
      finds("queue a", "index of queues")
    end)
    it("a stray entry in the index of queues", function()
      jq:enqueue("a")
      jq:redis("ZADD", keys.HEADS .. "*", 5, space.UNKNOWN_ID .. "a")
      finds("index * has a stray entry " .. space.UNKNOWN_ID .. "a")
    end)
    it("a stray entry in the index of a pattern", function()
      jq:enqueue("mail.a")
      jq:pick("mail.*")
      jq:redis("ZADD", keys.HEADS .. "mail.*", 5, space.UNKNOWN_ID .. "mail.a")
      finds("index mail.* has a stray entry")
    end)
    it("jobs held by an unknown worker", function()
      jq:redis("ZADD", keys.HELD .. space.UNKNOWN_WORKER, 1, jq:enqueue("a"))
      finds("worker " .. space.UNKNOWN_WORKER .. " is unknown and holds jobs")
    end)
    it("a worker that holds what does not run", function()
      local worker = jq:register({})
      local id = jq:enqueue("a")
      jq:redis("ZADD", keys.HELD .. worker, 1, id)
      finds("worker " .. worker .. " does not hold " .. id)
    end)
    it("a worker with room that is not in its pool", function()
      local worker = jq:register({ url = "http://w/" })
      for _, key in ipairs(jq:keys()) do
        if key:sub(1, #keys.POOL) == keys.POOL then
          jq:redis("DEL", key)
        end
      end
      finds("worker " .. worker .. " stands wrongly in its pool")
    end)
    it("a full worker in its pool", function()
      local worker = jq:register({ url = "http://w/" })
      local pool
      for _, key in ipairs(jq:keys()) do
        if key:sub(1, #keys.POOL) == keys.POOL then
          pool = key
        end
      end
      jq:enqueue("a")
      jq:assign()
      jq:redis("ZADD", pool, 0, worker)
      finds("worker " .. worker .. " stands wrongly in its pool")
    end)
    it("a namespace whose next moment is later than its timers", function()
      jq:enqueue({ name = "a", delay = 50 })
      jq:redis("ZADD", keys.DUE, 5, "wa")
      finds("namespace is noted as due at", "but is due at 5")
    end)
    it("a channel of sleepers that is not counted", function()
      jq:redis("HSET", keys.SLEEPERS, "c", "\145\161a")
      finds("meta counts 0 channels with sleepers")
    end)
  end)

  local function with(field)
    return function(value)
      return { { [field] = value } }
    end
  end
  local function current()
    return jq
  end
  specs.refused_values(it, current, "audit", with("cursor"), {
    { "a number as cursor", 5, "INVALID cursor: expected a cursor as the last reply gave it, got 5" },
    { "an empty cursor", "", 'INVALID cursor: expected a cursor as the last reply gave it, got ""' },
    { "a cursor of letters", "x", 'INVALID cursor: expected a cursor as the last reply gave it, got "x"' },
    { "a cursor of 21 digits", ("1"):rep(21), "INVALID cursor: expected a cursor as the last reply gave it" },
  })
  specs.refused_values(it, current, "audit", with("count"), {
    { "a count of 0", 0, "INVALID count: expected an integer from 1 to 1000, got 0" },
    { "a count of 1001", 1001, "INVALID count: expected an integer from 1 to 1000, got 1001" },
  })
  specs.one_spec(it, current, "audit", {})
end)
