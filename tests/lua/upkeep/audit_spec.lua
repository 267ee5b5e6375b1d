local keys_of = require "support.keys"
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("audit", function()
  local jq, keys
  before_each(function()
    jq = space.new()
    keys = keys_of(jq.name)
  end)
  after_each(function()
    jq:close()
  end)

  it("finds nothing in a busy namespace", function()
    jq:register({ url = "http://w/", max_jobs = 5, secrets = { "whsec_" .. ("A"):rep(32) } })
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
  it("tells what it found when a step is over", function()
    local ids = jq:enqueue_many({ name = "a" }, 3000)
    jq:redis("ZREM", keys.SET .. "q:a", ids[10], ids[2990])
    jq.is_corrupt = true
    local found = table.concat(jq:audit(), "; ")
    assert.is_truthy(found:find(ids[10], 1, true) and found:find(ids[2990], 1, true), found)
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
      finds("job " .. ids[2] .. " is missing in set q:a")
    end)
    it("settings of its own that a queue knows nothing of, or of no queue", function()
      jq:queue("a")
      jq:redis("SET", keys.OWN_SETTINGS .. "a", "\129\1\5")
      jq:redis("SET", keys.OWN_SETTINGS .. "b", "\129\1\5")
      finds("queue a has a wrong flag of settings of its own")
      finds("key settings:b is of nothing that is there")
    end)
    it("webhooks that calls do not know of, and secrets of none", function()
      jq:call("subscribe", { id = "w", url = "http://h/", secrets = { "whsec_" .. ("A"):rep(32) } },
        msgpack.pack({ name = "a" }))
      jq:redis("DEL", keys.WEBHOOKS)
      finds("meta has a wrong flag of webhooks")
      finds("secrets are of webhook w which is not there")
    end)
    it("a job in a second set", function()
      local id = jq:enqueue("a")
      jq:redis("ZADD", set("s", "a"), 1, id)
      finds("set s:a holds " .. id .. " which does not belong there: it is queued")
    end)
    it("a job among those of another state", function()
      local job = jq:take(jq:enqueue("a") and "a")
      jq:redis("ZADD", set("r", "a"), 2 ^ 47, job.id)
      finds(job.id, "stands in another's band")
    end)
    it("a unit that no job has, also where thousands of jobs have ended", function()
      jq:constrain({ id = "c", concurrency = 2 }, { name = "a" })
      local job = jq:take(jq:enqueue("a") and "a")
      jq:redis("DEL", keys.JOB .. job.id)
      jq:redis("ZREM", set("r", "a"), job.id)
      for i = 1, 4100 do
        jq:redis("ZADD", set("r", "a"), string.format("%.0f", 2 ^ 47 + i), string.format("%014x", i))
      end
      finds("has in use 1 but jobs have 0")
    end)
    it("a job with another score than its priority", function()
      local ids = jq:enqueue_all("a", "a")
      jq:redis("ZADD", set("q", "a"), 7, ids[2])
      finds(ids[2], "has 0 and score 7")
    end)
    it("a result that its job knows nothing of", function()
      local id = jq:enqueue("a")
      jq:redis("SET", keys.OUTCOME .. id, "x")
      finds("job " .. id .. " has a wrong flag of key o:" .. id)
    end)
    it("a set that holds an unknown job", function()
      jq:enqueue("a")
      jq:redis("ZADD", set("q", "a"), 0, space.UNKNOWN_ID)
      finds("set q:a holds " .. space.UNKNOWN_ID .. " which has no record")
    end)
    it("a queue that has jobs and no record", function()
      jq:enqueue("a")
      jq:redis("DEL", keys.QUEUE .. "a")
      finds("queue a is listed and is not there")
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
        finds("set " .. letter .. ":a is noted as due at", "but is due at 5")
      end)
    end
    it("a tag that is missing among the names", function()
      jq:enqueue({ name = "a", tags = { "t" } })
      jq:enqueue({ name = "a", tags = { "u" } })
      jq:redis("ZREM", keys.TAG_NAMES, "t")
      finds("set tagged:t is missing among the names")
    end)
    it("a queue whose timer is noted too late", function()
      jq:enqueue({ name = "a", delay = 50 })
      local member = jq:redis("ZRANGE", keys.DUE, 0, 0)[1]
      jq:redis("ZADD", keys.DUE, space.START_MS + 1e9, member)
      finds("wa is noted as due at")
    end)
    it("a queue that is not where it belongs in the index of queues", function()
      jq:enqueue_all("a", "b")
      local member = jq:redis("ZRANGE", keys.HEADS .. "*", 0, 0)[1]
      jq:redis("ZADD", keys.HEADS .. "*", 9, member)
      finds("queue a is not where it belongs in the index of queues")
    end)
    it("jobs held by an unknown worker", function()
      jq:redis("ZADD", keys.HELD .. space.UNKNOWN_WORKER, 1, jq:enqueue("a"))
      finds("worker " .. space.UNKNOWN_WORKER .. " is unknown and holds jobs")
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
    it("a namespace whose next moment is later than its timers", function()
      jq:enqueue({ name = "a", delay = 50 })
      jq:redis("ZADD", keys.DUE, 5, "wa")
      finds("namespace is noted as due at", "but is due at 5")
    end)
    it("a job that runs and has lost its unique key to the one after it", function()
      local id = jq:enqueue({ name = "a", unique = "k" })
      jq:take("a")
      jq:redis("SET", keys.UNIQUE .. "k", jq:enqueue({ name = "a", unique = "k", if_exists = "latest" }))
      finds("job " .. id .. " has lost its unique key")
    end)
    it("a unique key that is kept for a job which has not ended", function()
      local id = jq:enqueue({ name = "a", unique = "k" })
      jq:redis("ZADD", keys.DUE, 5, "Uk")
      finds("unique key k is kept for " .. id .. " which has not ended")
      finds("namespace is noted as due at")
    end)
    it("a queue that would let records go without a word to the unique keys kept for them", function()
      jq:enqueue({ name = "a", unique = "k", unique_for = 5 })
      local record = jq:redis("GET", keys.QUEUE .. "a")
      jq:redis("SET", keys.QUEUE .. "a", "\0" .. record:sub(2))
      finds("queue a has jobs in indexes and does not know it")
    end)
  end)
end)
