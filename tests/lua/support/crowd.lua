-- Many workers as the protocol wants them, with the settable clock in the place of BZPOPMIN's timeout.
local luassert = require "luassert"

local CHANNELS = { c = { "a", "b" }, d = { "mail.*", "a" }, e = { "*" } }
local LONGEST_MS = 8000

local Crowd = { QUEUES = { "a", "b", "mail.de", "mail.fr" }, LONGEST_MS = LONGEST_MS }
Crowd.__index = Crowd

---@param jq table namespace
---@return table crowd a list of workers {name, channel, queues, asleep_until?, job?}, with the jobs they `held`
function Crowd.new(jq)
  local self = setmetatable({ jq = jq, held = {} }, Crowd)
  for channel, queues in pairs(CHANNELS) do
    for i = 1, 3 do
      self[#self + 1] = { name = channel .. i, channel = channel, queues = queues }
    end
  end
  table.sort(self, function(one, other)
    return one.name < other.name
  end)
  return self
end

function Crowd:work(worker)
  local jobs = self.jq:pick({ worker = worker.name, queues = worker.queues,
    wait = { on = worker.channel, ms = LONGEST_MS } })
  if jobs[1] then
    self.held[#self.held + 1] = jobs[1]
    worker.job = jobs[1]
  else
    worker.asleep_until = self.jq.now_ms + jobs.next_ms
  end
end

--- Everybody acts until all sleep or hold a job.
---@param most number picks that all may make together
function Crowd:come_to_rest(most)
  local picks = 0
  local is_moving = true
  while is_moving do
    is_moving = false
    for _, worker in ipairs(self) do
      if worker.asleep_until and (worker.asleep_until <= self.jq.now_ms or self.jq:is_woken(worker.channel)) then
        worker.asleep_until = nil
      end
      if not worker.asleep_until and not worker.job then
        self:work(worker)
        picks = picks + 1
        luassert.is_true(picks <= (most or 300), "the workers spin")
        is_moving = true
      end
    end
  end
end

--- Time goes from timer to timer, as it does for workers that block in Redis.
function Crowd:pass(ms)
  local target_ms = self.jq.now_ms + ms
  while true do
    local first_ms = math.huge
    for _, worker in ipairs(self) do
      first_ms = math.min(first_ms, worker.asleep_until or math.huge)
    end
    if first_ms > target_ms then
      break
    end
    self.jq:set_clock(first_ms)
    self:come_to_rest()
  end
  self.jq:set_clock(target_ms)
end

--- One of them has done with its job, by whatever comes of the job then.
---@return table job
function Crowd:let_go()
  local job = table.remove(self.held, math.random(#self.held))
  for _, worker in ipairs(self) do
    if worker.job == job then
      worker.job = nil
    end
  end
  return job
end

---@return table? worker that sleeps although it wants this queue
function Crowd:sleeper_for(queue)
  for _, worker in ipairs(self) do
    for _, wanted in ipairs(worker.asleep_until and worker.queues or {}) do
      if wanted == "*" or wanted == queue or wanted == "mail.*" and queue:find("^mail%.") then
        return worker
      end
    end
  end
end

return Crowd
