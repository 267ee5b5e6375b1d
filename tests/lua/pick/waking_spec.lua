-- Workers that sleep while jobs are held: none sleeps through a job that may start, none spins while all is held.
local space = require "support.space"

describe("many workers under constraints", function()
  local jq
  before_each(function()
    jq = space.new()
  end)
  after_each(function()
    jq:close()
  end)

  local CHANNELS = { c = { "a", "b" }, d = { "mail.*", "a" }, e = { "*" } }
  local QUEUES = { "a", "b", "mail.de", "mail.fr" }
  local LONGEST_MS = 8000

  --- Workers as the protocol wants them, with the settable clock in the place of BZPOPMIN's timeout.
  local function new_crowd()
    local crowd = {}
    for channel, queues in pairs(CHANNELS) do
      for i = 1, 3 do
        crowd[#crowd + 1] = { name = channel .. i, channel = channel, queues = queues }
      end
    end
    table.sort(crowd, function(one, other)
      return one.name < other.name
    end)
    return crowd
  end

  local held

  local function work(worker)
    local jobs = jq:pick({ worker = worker.name, queues = worker.queues,
      wait = { on = worker.channel, ms = LONGEST_MS } })
    if jobs[1] then
      held[#held + 1] = jobs[1]
      worker.job = jobs[1]
    elseif jobs.next_ms ~= 0 then
      worker.asleep_until = jq.now_ms + (jobs.next_ms == -1 and LONGEST_MS or math.min(LONGEST_MS, jobs.next_ms))
    end
  end

  --- Everybody acts until all sleep or hold a job.
  ---@return number picks
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
          assert.is_true(picks <= 300, "the workers spin")
          is_moving = true
        end
      end
    end
    return picks
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

  local function wants(worker, queue)
    for _, wanted in ipairs(worker.queues) do
      if wanted == "*" or wanted == queue or (wanted == "mail.*" and queue:find("^mail%.")) then
        return true
      end
    end
  end

  --- A job that may start now, though a worker that wants it sleeps.
  ---@param ids table of all jobs that have not ended
  local function slept_through(crowd, ids)
    for id in pairs(ids) do
      local why = jq:explain(id)
      if why.paused == nil and why.status ~= "running" then
        ids[id] = nil
      elseif why.start_ms and why.start_ms <= jq.now_ms and not why.paused and not why.held then
        for _, worker in ipairs(crowd) do
          if worker.asleep_until and wants(worker, why.queue) then
            return worker.name .. " sleeps while a job may start in " .. why.queue .. " (" .. why.status .. ")"
          end
        end
      end
    end
  end

  local function let_go(crowd)
    local job = table.remove(held, math.random(#held))
    for _, worker in ipairs(crowd) do
      if worker.job == job then
        worker.job = nil
      end
    end
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
      spec.rate = { limit = math.random(3), period = math.random(1, 40) / 10, smooth = math.random(2) == 1 }
      spec.concurrency = dice == 2 and spec.concurrency or nil
    end
    if math.random(3) == 1 then
      spec.by = "argument.v"
    elseif math.random(4) == 1 then
      spec.concurrency, spec.order = 1, "strict"
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
    for field, value in pairs(more or {}) do
      spec[field] = value
    end
    ids[jq:enqueue(spec, { v = math.random(3) })] = true
  end

  for seed = 1, 6 do
    it("never sleep through what may start, and never spin (" .. seed .. ")", function()
      math.randomseed(seed)
      held = {}
      local crowd, ids, paused = new_crowd(), {}, {}
      if seed % 3 == 0 then
        jq:queue({ name = "a", fair = { { by = "argument.v" } } })
      end
      come_to_rest(crowd)
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
        elseif dice <= 11 and held[1] then
          let_go(crowd)
        else
          pass(crowd, math.random(1, 3000))
        end
        local picks = come_to_rest(crowd)
        assert.is_true(picks <= 5 * #crowd, "step " .. step .. ": " .. picks .. " picks")
        local problem = slept_through(crowd, ids)
        assert.is_nil(problem, "step " .. step .. ": " .. tostring(problem))
      end
    end)
  end
end)
