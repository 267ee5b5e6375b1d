-- Workers that sleep while jobs are held: none sleeps through a job that may start, none spins while all is held.
local Crowd = require "support.crowd"
local space = require "support.space"

describe("many workers under constraints #once", function()
  local jq = space.each()

  local QUEUES = Crowd.QUEUES

  --- A job that may start now, though a worker that wants it sleeps.
  ---@param ids table of all jobs that have not ended
  local function slept_through(crowd, ids)
    for id in pairs(ids) do
      local why = jq:explain(id)
      if why.paused == nil and why.status ~= "running" then
        ids[id] = nil
      elseif why.start_ms and why.start_ms <= jq.now_ms and not why.paused and not why.held then
        local worker = crowd:sleeper_for(why.queue)
        if worker then
          return worker.name .. " sleeps while a job may start in " .. why.queue .. " (" .. why.status .. ")"
        end
      end
    end
  end

  local function let_go(crowd)
    local job = crowd:let_go()
    local dice = math.random(6)
    if dice == 1 then
      jq:fail(job, { should_retry = math.random(3) > 1 })
    elseif dice == 2 then
      jq:release(job, math.random(0, 2))
    elseif dice == 3 then
      pcall(jq.release, jq, job, nil, { x = math.random(0, 5) }) -- x may have been deleted
    elseif dice == 4 then
      jq:cancel(job.id)
    else
      jq:succeed(job)
    end
  end

  local function change()
    local id = ({ "x", "y", "z" })[math.random(3)]
    local dice = math.random(6)
    if dice == 1 then
      pcall(jq.unconstrain, jq, id)
      return
    end
    local spec = { id = id, concurrency = math.random(3) }
    if dice <= 3 then
      spec.rate = { limit = math.random(3), period = math.random(1, 40) / 10 }
      spec.concurrency = dice == 2 and spec.concurrency or nil
    end
    if math.random(3) == 1 then
      spec.by = "argument.v"
    end
    jq:constrain(spec, id == "z" and { queue = "mail.*" } or { tags = id })
  end

  local function enqueue(ids, more)
    local tags = {}
    for _, tag in ipairs({ "x", "y" }) do
      tags[#tags + 1] = math.random(2) == 1 and tag or nil
    end
    local spec = { name = QUEUES[math.random(#QUEUES)], tags = tags[1] and tags or nil, timeout = math.random(1, 20),
      priority = math.random(-1, 1), retry_base = 1, retry_jitter = 0 }
    ids[jq:enqueue(space.with(spec, more), { v = math.random(3) })] = true
  end

  for seed = 1, 3 do
    it("never sleep through what may start, and never spin (" .. seed .. ")", function()
      math.randomseed(seed)
      local crowd, ids, paused = Crowd.new(jq), {}, {}
      if seed % 3 == 0 then
        jq:queue({ name = "a", fair = { by = "argument.v" } })
      end
      crowd:come_to_rest()
      for step = 1, 250 do
        local dice = math.random(14)
        if dice <= 4 then
          enqueue(ids)
        elseif dice == 5 then
          enqueue(ids, { delay = math.random(1, 20) })
        elseif dice == 6 then
          local queue = QUEUES[math.random(#QUEUES)]
          paused[queue] = not paused[queue]
          jq:queue({ name = queue, paused = paused[queue] })
        elseif dice == 7 then
          change()
        elseif dice == 8 and jq:constraint("x") and not jq:constraint("x").by then
          jq:hold("x", math.random(0, 6))
        elseif dice <= 11 and crowd.held[1] then
          let_go(crowd)
        else
          crowd:pass(math.random(1, 3000))
        end
        crowd:come_to_rest(5 * #crowd)
        local problem = slept_through(crowd, ids)
        assert.is_nil(problem, "step " .. step .. ": " .. tostring(problem))
      end
    end)
  end
end)
