local keys_of = require "support.keys"
local server = require "support.server"
local space = require "support.space"

describe("sleepers", function()
  local jq, keys
  before_each(function()
    jq = space.new()
    keys = keys_of(jq.name)
  end)
  after_each(function()
    jq:close()
  end)

  --- A worker that sleeps on the channel comes back, as one does after a marker.
  local function pick(worker, channel, queues, count)
    return jq:pick({ worker = worker, queues = queues, count = count, wait = { on = channel, ms = 10000 } })
  end

  describe("one job", function()
    it("wakes one sleeper", function()
      jq:sleep("w1", "c", "a")
      jq:sleep("w2", "c", "a")
      jq:enqueue("a")
      assert.is_true(jq:is_woken("c"))
      assert.is_false(jq:is_woken("c"))
    end)
    it("wakes one of each channel that wants it", function()
      jq:sleep("w1", "c", "a")
      jq:sleep("w2", "d", { "b", "a" })
      jq:sleep("w3", "e", "b")
      jq:enqueue("a")
      assert.are.same({ true, true, false }, { jq:is_woken("c"), jq:is_woken("d"), jq:is_woken("e") })
    end)
    it("wakes those who want it by a pattern, and no others", function()
      jq:sleep("w1", "c", "mail.*")
      jq:sleep("w2", "d", "*")
      jq:sleep("w3", "e", "mail.*.fast")
      jq:enqueue("mail.de")
      assert.are.same({ true, true, false }, { jq:is_woken("c"), jq:is_woken("d"), jq:is_woken("e") })
    end)
    it("wakes nobody when nobody sleeps", function()
      jq:enqueue("a")
      assert.is_false(jq:is_woken("c"))
    end)
    it("wakes one who really blocks, in Redis", function()
      local sleeper = server.connect()
      jq:sleep("w1", "c", "a")
      sleeper:send("BZPOPMIN", jq.name .. ":wake:c", 0)
      jq:enqueue("a")
      assert.are.equal(jq.name .. ":wake:c", sleeper:read()[1])
      sleeper:close()
    end)
    it("enqueued before the sleeper blocks is not lost", function()
      jq:sleep("w1", "c", "a")
      jq:enqueue("a")
      local sleeper = server.connect()
      assert.are.equal(jq.name .. ":wake:c", sleeper:call("BZPOPMIN", jq.name .. ":wake:c", 0)[1])
      sleeper:close()
    end)
  end)

  describe("many jobs", function()
    it("wake one after the other, until nothing is ready", function()
      for i = 1, 4 do
        jq:sleep("w" .. i, "c", "a")
      end
      jq:enqueue_all("a", "a", "a")
      local woken = 0
      while jq:is_woken("c") do
        woken = woken + 1
        assert.are.equal(1, #pick("w" .. woken, "c", "a"))
      end
      assert.are.equal(3, woken)
    end)
    it("in queues of different workers wake each channel once", function()
      jq:sleep("w1", "c", "a")
      jq:sleep("w2", "d", "b")
      jq:enqueue_all("a", "b", "a", "b")
      assert.are.same({ true, true }, { jq:is_woken("c"), jq:is_woken("d") })
      assert.are.same({ false, false }, { jq:is_woken("c"), jq:is_woken("d") })
    end)
    it("taken by one wake no other", function()
      jq:sleep("w1", "c", "a")
      jq:sleep("w2", "c", "a")
      jq:enqueue_all("a", "a")
      assert.is_true(jq:is_woken("c"))
      assert.are.equal(2, #pick("w1", "c", "a", 10))
      assert.is_false(jq:is_woken("c"))
    end)
    it("wake the next though hundreds that come first are held", function()
      jq:constrain({ id = "all", concurrency = 1 }, { queue = "a" })
      jq:constrain({ id = "each", concurrency = 1, by = "argument.v" }, { queue = "a" })
      for i = 1, 2 do
        jq:sleep("w" .. i, "c", { "a", "b" })
      end
      local values = {}
      for i = 1, 200 do
        values[i] = { v = i }
      end
      jq:enqueue_each({ name = "a" }, unpack(values))
      local last = jq:enqueue("b")
      assert.is_true(jq:is_woken("c"))
      assert.are.equal("a", pick("w1", "c", { "a", "b" })[1].name)
      assert.is_true(jq:is_woken("c"))
      local jobs = pick("w2", "c", { "a", "b" })
      while not jobs[1] and jobs.next_ms == 0 do
        jobs = pick("w2", "c", { "a", "b" })
      end
      assert.are.same({ last }, space.ids(jobs))
    end)
    it("go on when the last is fetched while finishing", function()
      jq:sleep("w1", "c", "a")
      jq:sleep("w2", "c", "a")
      jq:enqueue_all("a", "a")
      jq:is_woken("c")
      local job = pick("w1", "c", "a")[1]
      assert.is_true(jq:is_woken("c"))
      pick("w2", "c", "a")
      jq:enqueue_all("a")
      jq:sleep("w3", "c", "b")
      jq:call("finish", { worker = "w1", pick = { queues = "a", wait = { on = "c", ms = 1000 } } },
        { id = job.id, token = job.token, type = "success" }, "\192")
      assert.are.equal(3, jq:queue("a").running + jq:queue("a").done)
    end)
  end)

  describe("a worker that is awake", function()
    it("and finds a job wakes nobody without need", function()
      jq:sleep("w1", "c", "a")
      jq:enqueue("a")
      jq:is_woken("c")
      pick("w2", "c", "a")
      assert.is_false(jq:is_woken("c"))
    end)
    it("and goes to sleep takes a stale marker away", function()
      jq:sleep("w1", "c", "a")
      jq:enqueue("a")
      jq:pick("a")
      jq:sleep("w2", "c", "a")
      assert.is_false(jq:is_woken("c"))
    end)
    it("is not counted as asleep", function()
      jq:sleep("w1", "c", "a")
      jq:enqueue_all("a", "a")
      jq:is_woken("c")
      pick("w1", "c", "a")
      assert.is_false(jq:is_woken("c"))
    end)
  end)

  describe("a moment that is due", function()
    it("earlier than sleepers were told wakes one to set its timer", function()
      assert.are.equal(-1, jq:sleep("w1", "c", "a"))
      jq:sleep("w2", "c", "a")
      jq:enqueue({ name = "a", delay = 5 })
      assert.is_true(jq:is_woken("c"))
      assert.are.equal(5000, jq:sleep("w1", "c", "a"))
      assert.is_false(jq:is_woken("c"))
    end)
    it("later than a sleeper will be up wakes nobody", function()
      jq:sleep("w1", "c", "a", 5000)
      jq:enqueue({ name = "a", delay = 5.5 })
      assert.is_false(jq:is_woken("c"))
    end)
    it("as the sleepers know it wakes nobody", function()
      jq:enqueue({ name = "a", delay = 5 })
      assert.are.equal(5000, jq:sleep("w1", "c", "a"))
      jq:enqueue({ name = "a", delay = 5 })
      jq:enqueue({ name = "a", delay = 6 })
      assert.is_false(jq:is_woken("c"))
    end)
    it("comes to light when the one who knew it goes to work", function()
      jq:sleep("w2", "c", "a")
      jq:enqueue({ name = "a", delay = 5 })
      jq:is_woken("c")
      jq:sleep("w1", "c", "a") -- w1 has set its timer to 5 s; w2 sleeps for 10 s
      jq:enqueue("a")
      assert.is_true(jq:is_woken("c"))
      pick("w1", "c", "a")
      assert.is_true(jq:is_woken("c"))
      assert.are.equal(5000, jq:sleep("w2", "c", "a"))
    end)
    it("comes to light when the one who would have been up for it is to be quiet", function()
      local worker = jq:register({ queues = "a" })
      jq:sleep("w1", "c", "a", 10000)
      jq:sleep(worker, "c", "a", 1000)
      jq:enqueue({ name = "a", delay = 5 })
      assert.is_false(jq:is_woken("c"))
      jq:call("worker", { worker = worker, request = "quiet" })
      assert.is_true(jq:is_woken("c"))
    end)
    describe("after the one who would have been up died in its sleep, wakes another", function()
      before_each(function()
        jq:sleep("w1", "c", "a", 10000)
        jq:sleep("w2", "c", "a", 1)
      end)
      it("though somebody else dealt with what was due before", function()
        jq:call("schedule", { id = "s", every = 0.1, job = { name = "b" } }, "\192")
        jq:pass(3)
        jq:tick()
        jq:enqueue({ name = "a", delay = 1 })
        assert.is_true(jq:is_woken("c"))
      end)
      it("though something else is due before", function()
        jq:enqueue({ name = "b", delay = 5 })
        jq:pass(2)
        jq:enqueue({ name = "a", delay = 4 })
        assert.is_true(jq:is_woken("c"))
      end)
      it("though something was to be due before that is not any more", function()
        local first = jq:enqueue({ name = "a", delay = 5 })
        jq:call("cancel", { ids = { first } })
        jq:pass(2)
        jq:enqueue({ name = "a", delay = 4 })
        assert.is_true(jq:is_woken("c"))
      end)
    end)
    it("and that nobody came for lets a job that comes later wake another", function()
      jq:constrain({ id = "c", rate = { limit = 1, period = 1 } }, { queue = "a" })
      jq:sleep("w1", "c", "a")
      jq:enqueue_all("a", "a")
      assert.is_true(jq:is_woken("c"))
      jq:take("a")
      jq:sleep("w2", "c", "a")
      jq:pass(1.5)
      jq:enqueue("a")
      assert.is_false(jq:is_woken("c")) -- w2 is late, but not yet dead
      jq:pass(1.5)
      jq:enqueue("a")
      assert.is_true(jq:is_woken("c"))
    end)
    it("of a retry wakes one to set its timer", function()
      jq:enqueue({ name = "a", timeout = 100, retry_base = 3, retry_jitter = 0 })
      local job = jq:take("a")
      jq:sleep("w1", "c", "a")
      jq:fail(job)
      assert.is_true(jq:is_woken("c"))
      assert.are.equal(3000, jq:sleep("w1", "c", "a"))
    end)
    it("of a lease wakes one to set its timer", function()
      jq:enqueue({ name = "a", timeout = 2 })
      jq:sleep("w1", "c", "b")
      jq:take("a")
      assert.is_true(jq:is_woken("c"))
      assert.are.equal(2000, jq:sleep("w1", "c", "b"))
    end)
    it("that has come wakes who wants the job, whoever moved it", function()
      jq:sleep("w1", "c", "a")
      jq:enqueue({ name = "a", delay = 5 })
      jq:is_woken("c")
      jq:sleep("w1", "c", "a")
      jq:pass(5)
      jq:tick()
      assert.is_true(jq:is_woken("c"))
      assert.are.equal(1, #pick("w1", "c", "a"))
    end)
  end)

  describe("nobody is woken", function()
    it("by a job in a paused queue", function()
      jq:queue({ name = "a", paused = true })
      jq:sleep("w1", "c", "a")
      jq:enqueue("a")
      assert.is_false(jq:is_woken("c"))
      jq:sleep("w1", "c", "*")
      jq:enqueue("a")
      assert.is_false(jq:is_woken("c"))
    end)
    it("again and again while all jobs are delayed", function()
      jq:enqueue_many({ name = "a", delay = 5 }, 10)
      for i = 1, 5 do
        assert.are.equal(5000, jq:sleep("w" .. i, "c", "a"))
      end
      assert.is_false(jq:is_woken("c"))
    end)
    it("by a job that is refused", function()
      jq:queue({ name = "a", max_waiting = 1 })
      jq:enqueue("a")
      jq:sleep("w1", "c", "b")
      jq:refuses("FULL", "enqueue", { name = "a" }, "\192", { name = "b" }, "\192")
      assert.is_false(jq:is_woken("c"))
    end)
    it("by heartbeats and reading", function()
      jq:enqueue_all("b", { name = "b", keep_result = true })
      local jobs = jq:pick({ queues = "b", count = 2 })
      jq:sleep("w1", "c", "a")
      jq:heartbeat(jobs[1])
      jq:get(jobs[1].id)
      jq:call("result", jobs[2].id)
      jq:call("watch", jobs[2].id)
      jq:queue("b")
      assert.is_false(jq:is_woken("c"))
    end)
  end)

  describe("a sleeper is woken", function()
    it("when a paused queue with jobs is resumed", function()
      jq:queue({ name = "a", paused = true })
      jq:enqueue("a")
      jq:sleep("w1", "c", "a")
      jq:queue({ name = "a", paused = false })
      assert.is_true(jq:is_woken("c"))
    end)
    it("when a job is given back", function()
      jq:enqueue("a")
      local job = jq:take("a")
      jq:sleep("w1", "c", "a")
      jq:release(job)
      assert.is_true(jq:is_woken("c"))
    end)
    it("when a job fails and is to be retried at once", function()
      jq:enqueue({ name = "a", retry_base = 0 })
      local job = jq:take("a")
      jq:sleep("w1", "c", "a")
      jq:fail(job)
      assert.is_true(jq:is_woken("c"))
      assert.are.same({ job.id }, space.ids(pick("w1", "c", "a")))
    end)
    it("when a worker goes", function()
      local worker = jq:register({ url = "http://w/" })
      jq:enqueue("a")
      jq:assign()
      jq:sleep("w1", "c", "a")
      jq:call("unregister", { worker = worker })
      assert.is_true(jq:is_woken("c"))
    end)
  end)

  describe("a dead sleeper", function()
    it("costs nothing: the marker goes to another", function()
      local dead, alive = server.connect(), server.connect()
      jq:sleep("dead", "c", "a")
      jq:sleep("alive", "c", "a")
      local dead_id = dead:call("CLIENT", "ID")
      dead:send("BZPOPMIN", jq.name .. ":wake:c", 0)
      jq:redis("CLIENT", "KILL", "ID", dead_id)
      alive:send("BZPOPMIN", jq.name .. ":wake:c", 0)
      jq:enqueue("a")
      assert.are.equal(jq.name .. ":wake:c", alive:read()[1])
      alive:close()
    end)
    it("is forgotten, with its channel", function()
      local before = #jq:keys()
      jq:sleep("dead", "c", "a", 1000)
      jq:pass(3)
      jq:enqueue("a")
      assert.is_false(jq:is_woken("c"))
      jq:cancel(jq:enqueue("a"))
      for _, key in ipairs(jq:keys()) do
        assert.is_nil(key:find("asleep", 1, true))
        assert.is_nil(key:find("sleepers", 1, true))
        assert.is_nil(key:find(":wake:", 1, true))
      end
      assert.is_true(#jq:keys() > before)
    end)
    it("does not keep another from being told of an earlier moment", function()
      jq:sleep("dead", "c", "a", 1)
      jq:sleep("alive", "c", "a", 60000)
      jq:pass(31)
      jq:enqueue({ name = "a", delay = 1 })
      assert.is_true(jq:is_woken("c"))
    end)
    it("that missed a moment does not keep another from being told of the next in the same queue", function()
      jq:sleep("w1", "c", "a", 30000)
      jq:sleep("w2", "c", "a", 1)
      jq:enqueue({ name = "a", delay = 1 })
      assert.is_false(jq:is_woken("c"))
      jq:pass(6)
      jq:enqueue({ name = "a", delay = 10 })
      assert.is_true(jq:is_woken("c"))
    end)
    it("that took a marker does not keep the next job from waking another", function()
      jq:sleep("dead", "c", "a")
      jq:sleep("alive", "c", "a")
      jq:enqueue("a")
      assert.is_true(jq:is_woken("c")) -- the dead one took it, and never picks
      jq:enqueue("a")
      assert.is_true(jq:is_woken("c"))
    end)
  end)

  describe("a master", function()
    local function sleep()
      return #jq:assign({ wait = { on = "push", ms = 10000 } })
    end
    it("is woken by a job for a worker with room", function()
      jq:register({ url = "http://w/", queues = "a" })
      assert.are.equal(0, sleep())
      jq:enqueue("a")
      assert.is_true(jq:is_woken("push"))
      assert.are.equal(1, #jq:assign())
    end)
    it("is not woken by a job that no worker wants", function()
      jq:register({ url = "http://w/", queues = "a" })
      sleep()
      jq:enqueue("b")
      assert.is_false(jq:is_woken("push"))
    end)
    it("is not woken by a job for workers without room", function()
      jq:register({ url = "http://w/", queues = "a" })
      jq:enqueue("a")
      jq:assign()
      sleep()
      jq:enqueue("a")
      assert.is_false(jq:is_woken("push"))
    end)
    it("is woken when a worker gets room", function()
      jq:register({ url = "http://w/", queues = "a" })
      jq:enqueue_all("a", "a")
      local job = jq:assign()[1]
      sleep()
      jq:succeed(job)
      assert.is_true(jq:is_woken("push"))
      assert.are.equal(1, #jq:assign())
    end)
    it("is woken when a worker registers", function()
      jq:enqueue("a")
      sleep()
      jq:register({ url = "http://w/", queues = "a" })
      assert.is_true(jq:is_woken("push"))
    end)
    it("is woken when a worker comes back to life", function()
      local worker = jq:register({ url = "http://w/" })
      jq:call("refuse", { worker = worker, jobs = {}, why = "unreachable", retry_after = 600 })
      jq:enqueue("a")
      sleep()
      jq:call("heartbeat", { worker = worker, jobs = {} })
      assert.is_true(jq:is_woken("push"))
    end)
    it("knows when a busy worker is to be tried again", function()
      local worker = jq:register({ url = "http://w/" })
      jq:enqueue("a")
      jq:call("refuse", { worker = worker, jobs = {}, why = "busy", retry_after = 5 })
      local jobs = jq:assign({ wait = { on = "push", ms = 10000 } })
      assert.are.same({ 0, 5000 }, { #jobs, jobs.next_ms })
    end)
    it("that took as many as it may wakes the next for the rest", function()
      jq:register({ url = "http://w/", max_jobs = 10 })
      jq:assign({ master = "m1", wait = { on = "push", ms = 10000 } })
      jq:assign({ master = "m2", wait = { on = "push", ms = 10000 } })
      jq:enqueue_all("a", "a")
      assert.is_true(jq:is_woken("push"))
      assert.are.equal(1, #jq:assign({ master = "m1", limit = 1, wait = { on = "push", ms = 10000 } }))
      assert.is_true(jq:is_woken("push"))
    end)
  end)

  describe("many workers", function()
    local CHANNELS = { c = { "a", "b" }, d = { "mail.*", "a" }, e = { "*" } }
    local QUEUES = { "a", "b", "mail.de", "mail.fr" }

    --- Workers as the protocol wants them, with the settable clock in the place of BZPOPMIN's timeout.
    local function new_crowd()
      local crowd = {}
      for channel, queues in pairs(CHANNELS) do
        for i = 1, 3 do
          crowd[#crowd + 1] = { name = channel .. i, channel = channel, queues = queues, may_be_late_ms = 0 }
        end
      end
      table.sort(crowd, function(one, other)
        return one.name < other.name
      end)
      return crowd
    end

    local held

    local function work(worker)
      local wait = { on = worker.channel, ms = 8000 }
      local jobs = jq:pick({ worker = worker.name, queues = worker.queues, wait = wait })
      if jobs[1] then
        held[#held + 1] = jobs[1]
        worker.job = jobs[1]
      elseif jobs.next_ms ~= 0 then
        local ms = jobs.next_ms == -1 and 8000 or math.min(8000, jobs.next_ms)
        worker.asleep_until = jq.now_ms + ms
      end
    end

    --- Everybody acts until all sleep or hold a job.
    local function come_to_rest(crowd)
      local picks = 0
      local is_moving = true
      while is_moving do
        is_moving = false
        for _, worker in ipairs(crowd) do
          if worker.asleep_until and (worker.asleep_until <= jq.now_ms or jq:is_woken(worker.channel)) then
            worker.asleep_until = nil
          end
          if not worker.asleep_until and not worker.job then
            work(worker)
            picks = picks + 1
            assert.is_true(picks <= 200, "the workers spin")
            is_moving = true
          end
        end
      end
      return picks
    end

    local function wants(worker, queue)
      for _, wanted in ipairs(worker.queues) do
        if wanted == "*" or wanted == queue or (wanted == "mail.*" and queue:find("^mail%.")) then
          return true
        end
      end
    end

    --- Time goes from timer to timer, as it does for workers that block in Redis.
    local function pass(crowd, ms)
      local target_ms = jq.now_ms + ms
      while true do
        local first_ms = math.huge
        for _, worker in ipairs(crowd) do
          first_ms = math.min(first_ms, worker.asleep_until or math.huge)
        end
        if first_ms > target_ms then
          break
        end
        jq:set_clock(first_ms)
        come_to_rest(crowd)
      end
      jq:set_clock(target_ms)
    end

    local function let_go(crowd)
      local job = table.remove(held, math.random(#held))
      for _, worker in ipairs(crowd) do
        if worker.job == job then
          worker.job = nil
        end
      end
      local dice = math.random(3)
      if dice == 1 then
        jq:fail(job, { should_retry = math.random(3) > 1 })
      elseif dice == 2 then
        jq:release(job, math.random(0, 2))
      else
        jq:succeed(job)
      end
    end

    --- What no sleeper may sleep through.
    local function slept_through(crowd, paused)
      for _, worker in ipairs(crowd) do
        for _, queue in ipairs(QUEUES) do
          if worker.asleep_until and wants(worker, queue) then
            if not paused[queue] and jq:redis("ZCARD", keys.SET .. "q:" .. queue) > 0 then
              return worker.name .. " sleeps while a job is ready in " .. queue
            end
            for letter in ("str"):gmatch(".") do
              local late_ms = jq.now_ms - worker.may_be_late_ms
              if jq:redis("ZCOUNT", keys.SET .. letter .. ":" .. queue, "-inf", late_ms) > 0 then
                return worker.name .. " sleeps while something is due in " .. letter .. " of " .. queue
              end
            end
          end
        end
      end
    end

    --- A sleeper dies and another worker takes its place. Those who relied on its timer sleep on their own.
    local deaths = 0
    local function die(crowd)
      local victim = crowd[math.random(#crowd)]
      if victim.asleep_until then
        deaths = deaths + 1
        victim.name = victim.channel .. "-" .. deaths
        victim.asleep_until = nil
      end
      for _, worker in ipairs(crowd) do
        worker.may_be_late_ms = 8000
      end
    end

    for seed = 1, 6 do
      local what = seed > 4 and ", though some die" or ""
      it("never sleep through what they want, and never spin" .. what .. " (" .. seed .. ")", function()
        math.randomseed(seed)
        held = {}
        local crowd, paused = new_crowd(), {}
        come_to_rest(crowd)
        for step = 1, 250 do
          local dice = math.random(10)
          local queue = QUEUES[math.random(#QUEUES)]
          if seed > 4 and math.random(5) == 1 then
            die(crowd)
          end
          if dice <= 3 then
            jq:enqueue({ name = queue, timeout = math.random(1, 20) })
          elseif dice == 4 then
            jq:enqueue({ name = queue, delay = math.random(1, 20), priority = math.random(-1, 1) })
          elseif dice == 5 then
            paused[queue] = not paused[queue]
            jq:queue({ name = queue, paused = paused[queue] })
          elseif dice <= 8 and held[1] then
            let_go(crowd)
          else
            pass(crowd, math.random(1, 3000))
          end
          local picks = come_to_rest(crowd)
          assert.is_true(picks <= 3 * #crowd, "step " .. step .. ": " .. picks .. " picks")
          local problem = slept_through(crowd, paused)
          assert.is_nil(problem, "step " .. step .. ": " .. tostring(problem))
        end
      end)
    end
  end)
end)
