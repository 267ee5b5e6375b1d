-- Random lives under constraints, against what the protocol says, stated naively: all jobs are looked at, all
-- constraints are checked. Whatever starts must be the next; when nothing starts, nothing may start.
local space = require "support.space"

describe("held jobs over a random life #once", function()
  local jq = space.each()

  local LONG_S = 100000 -- leases that outlast every test
  local QUEUES = { "q1", "q2", "q3" }

  -- What there is: jobs that wait in order of (priority, id), jobs that run, and constraints by tag, each
  -- {concurrency?, limit?, period_ms?, by?, count, starts, held_until}, the last three by key.
  local waiting, running, constraints, paused

  local function is_before(one, other)
    return one.priority < other.priority or one.priority == other.priority and one.id < other.id
  end

  local function wait(job)
    local low, high = 1, #waiting + 1
    while low < high do
      local middle = math.floor((low + high) / 2)
      if is_before(waiting[middle], job) then
        low = middle + 1
      else
        high = middle
      end
    end
    table.insert(waiting, low, job)
  end

  local function key_of(constraint, job)
    return constraint.by and job.v or ""
  end

  local function starts_of(constraint, key)
    local starts = constraint.starts[key] or {}
    while starts[1] and starts[1] <= jq.now_ms - (constraint.period_ms or 0) do
      table.remove(starts, 1)
    end
    constraint.starts[key] = starts
    return starts
  end

  local function is_held(job)
    for tag in pairs(job.tags) do
      local constraint = constraints[tag]
      if constraint then
        local key = key_of(constraint, job)
        if constraint.concurrency and (constraint.count[key] or 0) >= constraint.concurrency
          or constraint.limit and #starts_of(constraint, key) >= constraint.limit
          or (constraint.held_until[key] or 0) > jq.now_ms then
          return true
        end
      end
    end
    return false
  end

  ---@param wanted? string queue
  ---@return number? place of the job that is next
  local function next_place(wanted)
    for place, job in ipairs(waiting) do
      if (not wanted or wanted == job.queue) and not paused[job.queue] and not is_held(job) then
        return place
      end
    end
  end

  local function count(job, change)
    for tag in pairs(job.tags) do
      local constraint = constraints[tag]
      if constraint then
        local key = key_of(constraint, job)
        constraint.count[key] = (constraint.count[key] or 0) + change
        if change == 1 then
          table.insert(starts_of(constraint, key), jq.now_ms)
        end
      end
    end
  end

  local function check_starts(wanted, most)
    local jobs = jq:start({ queues = wanted or "*", count = most })
    for i, started in ipairs(jobs) do
      local place = next_place(wanted)
      assert.are.equal(place and waiting[place].id, started.id, "start " .. i .. " of " .. #jobs)
      local job = table.remove(waiting, place)
      job.attempt, job.token = started.attempt, started.token
      running[#running + 1] = job
      count(job, 1)
    end
    if #jobs < most then
      local place = next_place(wanted)
      assert.is_nil(place and "nothing starts, though this may: " .. waiting[place].id)
    end
    return #jobs
  end

  local function leave(place)
    local job = table.remove(running, place)
    count(job, -1)
    local dice = math.random(4)
    if dice == 1 then
      jq:release(job)
      wait(job)
    elseif dice == 2 then
      jq:cancel(job.id)
    else
      jq:succeed(job)
    end
  end

  ---@param tag string
  ---@param given table? concurrency, limit, period_ms, by; nil deletes
  local function constrain(tag, given)
    local old = constraints[tag]
    if not given then
      if old then
        jq:unconstrain(tag)
      end
      constraints[tag] = nil
      return
    end
    if old and old.held_until[""] then
      jq:hold(tag, 0) -- whether a change opens what was closed by hand is not said
    end
    local rate = given.limit and { limit = given.limit, period = given.period_ms / 1000 } or nil
    jq:constrain({ id = tag, concurrency = given.concurrency, by = given.by, rate = rate }, { tags = tag })
    local stays = old and old.by == given.by
    given.count, given.held_until = {}, {}
    given.starts = stays and old.limit and given.limit and old.period_ms == given.period_ms and old.starts or {}
    constraints[tag] = given
    for _, job in ipairs(running) do
      if job.tags[tag] then
        local key = key_of(given, job)
        given.count[key] = (given.count[key] or 0) + 1
      end
    end
  end

  ---@param chances table tag -> chance in percent
  local function enqueue(jobs, chances, values)
    local arguments = {}
    local made = {}
    for i = 1, jobs do
      local job = { tags = {}, v = math.random(values), priority = math.random(-2, 2), queue = QUEUES[math.random(3)] }
      local tags = {}
      for tag, chance in pairs(chances) do
        if math.random(100) <= chance then
          tags[#tags + 1] = tag
          job.tags[tag] = true
        end
      end
      made[i] = job
      arguments[#arguments + 1] = { name = "job", queue = job.queue, priority = job.priority, timeout = LONG_S,
        tags = tags[1] and tags or nil }
      arguments[#arguments + 1] = { v = job.v }
    end
    for i, id in ipairs(space.made(jq:call_list("enqueue", arguments))) do
      made[i].id = id
      wait(made[i])
    end
  end

  local function check_counts()
    local total = 0
    for _, name in ipairs(QUEUES) do
      total = total + (jq:counts(name).running or 0)
    end
    assert.are.equal(#running, total)
    for tag in pairs(constraints) do
      local expected = 0
      for _, job in ipairs(running) do
        expected = expected + (job.tags[tag] and 1 or 0)
      end
      assert.are.equal(expected, jq:constraint(tag).running)
    end
  end

  before_each(function()
    waiting, running, constraints, paused = {}, {}, {}, {}
  end)

  local function maybe(value)
    return math.random(2) == 1 and value or nil
  end

  for seed = 1, 3 do
    it("of few keys start when and only when all they need is open (" .. seed .. ")", function()
      math.randomseed(seed)
      for _ = 1, 250 do
        local dice = math.random(20)
        if dice <= 7 then
          enqueue(math.random(3), { x = 50, y = 50, z = 50 }, 3)
        elseif dice <= 11 then
          check_starts(maybe(QUEUES[math.random(3)]), math.random(4))
        elseif dice <= 14 and running[1] then
          leave(math.random(#running))
        elseif dice == 15 and waiting[1] then
          jq:cancel(table.remove(waiting, math.random(#waiting)).id)
        elseif dice == 16 then
          constrain(({ "x", "y", "z" })[math.random(3)], math.random(4) > 1 and {
            concurrency = math.random(3), by = maybe("argument.v"), limit = maybe(math.random(3)),
            period_ms = math.random(1, 4) * 500,
          } or nil)
        elseif dice == 17 then
          local queue = QUEUES[math.random(3)]
          paused[queue] = not paused[queue]
          jq:queue({ name = queue, paused = paused[queue] })
        elseif dice == 18 and constraints.x and not constraints.x.by then
          local seconds = math.random(0, 4)
          constraints.x.held_until[""] = jq:hold("x", seconds)
        else
          jq:pass(math.random(0, 1500) / 1000)
        end
      end
      check_starts(nil, 1000)
      check_counts()
    end)
  end

  for seed = 1, 3 do
    it("of many keys start when and only when all they need is open (" .. seed .. ")", function()
      math.randomseed(seed)
      local chances, values = { all = 60, one = 70, other = 40 }, 350
      for _ = 1, 4 do
        enqueue(400, chances, values)
      end
      for step = 1, 60 do
        local dice = math.random(10)
        if dice == 1 then
          constrain("all", math.random(5) > 1 and { concurrency = math.random(3, 60) } or nil)
        elseif dice == 2 then
          constrain("one", math.random(5) > 1 and { concurrency = math.random(2), by = "argument.v" } or nil)
        elseif dice == 3 then
          constrain("other", math.random(5) > 1 and { concurrency = math.random(4), by = "argument.v" } or nil)
        elseif dice == 4 and step < 50 then
          enqueue(math.random(100), chances, values)
        elseif dice == 5 and constraints.all then
          constraints.all.held_until[""] = jq:hold("all", math.random(0, 1) * 100)
        elseif dice <= 7 then
          for _ = 1, math.min(#running, math.random(30)) do
            leave(math.random(#running))
          end
        end
        check_starts(maybe(QUEUES[math.random(3)]), math.random(60))
      end
      if constraints.all then
        constraints.all.held_until[""] = jq:hold("all", 0)
      end
      check_starts(nil, 1000)
      check_counts()
    end)
  end

  for seed = 1, 2 do
    it("whose many keys open by the clock at one moment start in order (" .. seed .. ")", function()
      math.randomseed(seed)
      local chances, values = { all = 30, one = 90 }, 350
      constrain("one", { limit = 1, period_ms = 10000, by = "argument.v" })
      for _ = 1, 3 do
        enqueue(400, chances, values)
      end
      for _ = 1, 4 do
        check_starts(nil, 1000)
        for _ = 1, 50 do
          leave(math.random(#running))
        end
        constrain("all", { concurrency = math.random(200, 400) })
        jq:pass(math.random(2) == 1 and 10 or 7)
        check_starts(maybe(QUEUES[math.random(3)]), math.random(200))
        jq:pass(10)
      end
      check_starts(nil, 1000)
      check_counts()
    end)
  end
end)
