-- Sleepers that died, masters that sleep, and many workers at once.
local Crowd = require "support.crowd"
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

  describe("many workers #once", function()
    local QUEUES = Crowd.QUEUES

    local function let_go(crowd)
      local job = crowd:let_go()
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
    ---@param late_ms number by how much those may be late who relied on one that died
    local function slept_through(crowd, paused, late_ms)
      for _, queue in ipairs(QUEUES) do
        local worker = crowd:sleeper_for(queue)
        if worker and not paused[queue] and jq:redis("ZCARD", keys.SET .. "q:" .. queue) > 0 then
          return worker.name .. " sleeps while a job is ready in " .. queue
        end
        for letter in ("str"):gmatch(".") do
          if worker and jq:redis("ZCOUNT", keys.SET .. letter .. ":" .. queue, "-inf", jq.now_ms - late_ms) > 0 then
            return worker.name .. " sleeps while something is due in " .. letter .. " of " .. queue
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
    end

    for seed = 1, 6 do
      local what = seed > 4 and ", though some die" or ""
      it("never sleep through what they want, and never spin" .. what .. " (" .. seed .. ")", function()
        math.randomseed(seed)
        local crowd, paused, late_ms = Crowd.new(jq), {}, 0
        crowd:come_to_rest()
        for step = 1, 250 do
          local dice = math.random(10)
          local queue = QUEUES[math.random(#QUEUES)]
          if seed > 4 and math.random(5) == 1 then
            die(crowd)
            late_ms = Crowd.LONGEST_MS
          end
          if dice <= 3 then
            jq:enqueue({ name = queue, timeout = math.random(1, 20) })
          elseif dice == 4 then
            jq:enqueue({ name = queue, delay = math.random(1, 20), priority = math.random(-1, 1) })
          elseif dice == 5 then
            paused[queue] = not paused[queue]
            jq:queue({ name = queue, paused = paused[queue] })
          elseif dice <= 8 and crowd.held[1] then
            let_go(crowd)
          else
            crowd:pass(math.random(1, 3000))
          end
          crowd:come_to_rest(3 * #crowd)
          local problem = slept_through(crowd, paused, late_ms)
          assert.is_nil(problem, "step " .. step .. ": " .. tostring(problem))
        end
      end)
    end
  end)
end)
