-- The order of fair queues, against what the protocol says of it, stated naively: all jobs are looked at.
local space = require "support.space"

describe("a fair queue", function()
  local jq
  before_each(function()
    jq = space.new()
  end)
  after_each(function()
    jq:close()
  end)

  describe("agrees with the definition", function()
    local WEIGHTS = { a = 2, b = 0.5, c = 3, x = 0.7 }

    --- Gives the job that is next by what the protocol says, all jobs looked at, and starts it.
    local function definition(levels)
      local clocks = {}

      local function clock(place)
        clocks[place] = clocks[place] or { now = 0, finish = {} }
        return clocks[place]
      end

      --- Who is next at a place: the job, and which value's turn it is there, from which moment.
      local function turn(jobs, level, place)
        if level > levels then
          table.sort(jobs, function(one, other)
            return one.id < other.id
          end)
          return jobs[1]
        end
        local of_value = {}
        for _, job in ipairs(jobs) do
          local value = job.values[level]
          of_value[value] = of_value[value] or {}
          table.insert(of_value[value], job)
        end
        local best, best_value, best_at
        for value, theirs in pairs(of_value) do
          local at = math.max(clock(place).now, clock(place).finish[value] or 0)
          local job = turn(theirs, level + 1, place .. "/" .. value)
          if not best or at < best_at or at == best_at and job.id < best.id then
            best, best_value, best_at = job, value, at
          end
        end
        return best, best_value, best_at
      end

      local function start(jobs, level, place)
        local _, value, at = turn(jobs, level, place)
        if value then
          clock(place).now = at
          clock(place).finish[value] = at + 1 / (WEIGHTS[value] or 1)
          local theirs = {}
          for _, job in ipairs(jobs) do
            theirs[#theirs + 1] = job.values[level] == value and job or nil
          end
          start(theirs, level + 1, place .. "/" .. value)
        end
      end

      return function(waiting, is_held)
        local first
        for _, job in ipairs(waiting) do
          first = not is_held(job) and math.min(first or job.priority, job.priority) or first
        end
        local jobs = {}
        for _, job in ipairs(waiting) do
          jobs[#jobs + 1] = job.priority == first and not is_held(job) and job or nil
        end
        local job = turn(jobs, 1, tostring(first))
        start(jobs, 1, tostring(first))
        return job
      end
    end

    local function remove(list, id)
      for i, job in ipairs(list) do
        if job.id == id then
          return table.remove(list, i)
        end
      end
    end

    local VALUES = { { "a", "b", "d" }, { "x", "y" } }

    for seed = 1, 8 do
      local levels, most = seed % 2 + 1, seed > 4 and 2 or nil
      it("over a random life with " .. levels .. " levels" .. (most and " and a limit" or "") .. " (" .. seed .. ")",
        function()
          math.randomseed(seed)
          local waiting, running, count = {}, {}, {}
          local next_of = definition(levels)
          local function is_held(job)
            return most ~= nil and (count[job.values[1]] or 0) >= most
          end
          local given = { { by = "argument.1", weights = WEIGHTS }, { by = "argument.2", weights = WEIGHTS } }
          given[levels + 1] = nil
          jq:queue({ name = "q", fair = given })
          if most then
            jq:constrain({ id = "c", by = "argument.1", concurrency = most }, { queue = "q" })
          end
          for step = 1, 250 do
            local dice = math.random(8)
            if dice <= 3 then
              for _ = 1, math.random(1, 4) do
                local job = { priority = math.random(5) == 1 and 1 or 0,
                  values = { VALUES[1][math.random(3)], VALUES[2][math.random(2)] } }
                job.id = jq:enqueue({ name = "job", queue = "q", priority = job.priority, timeout = 100000 },
                  { 0, job.values[1], job.values[2] })
                waiting[#waiting + 1] = job
              end
            elseif dice <= 6 then
              for _, started in ipairs(jq:start({ queues = "q", count = math.random(1, 3) })) do
                local expected = next_of(waiting, is_held)
                assert.are.equal(expected and expected.id, started.id, "step " .. step)
                expected.attempt = started.attempt
                count[expected.values[1]] = (count[expected.values[1]] or 0) + 1
                running[#running + 1] = remove(waiting, started.id)
              end
            elseif dice == 7 and waiting[1] then
              local id = waiting[math.random(#waiting)].id
              jq:cancel(id)
              remove(waiting, id)
            elseif dice == 8 and running[1] then
              local job = table.remove(running, math.random(#running))
              count[job.values[1]] = count[job.values[1]] - 1
              if math.random(2) == 1 then
                jq:release(job)
                waiting[#waiting + 1] = job
              else
                jq:succeed(job)
              end
            end
          end
          for _, started in ipairs(jq:start("q")) do
            assert.are.equal(next_of(waiting, is_held).id, started.id)
            local job = remove(waiting, started.id)
            count[job.values[1]] = (count[job.values[1]] or 0) + 1
          end
          for _, job in ipairs(waiting) do
            assert.is_true(is_held(job))
          end
        end)
    end
  end)
end)
