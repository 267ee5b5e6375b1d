-- Which workers serve queues: registered ones, those that announced themselves, and those that wait for jobs. They are
-- read once in a call.
local budget = require "jqlua.job.budget"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local queues = require "jqlua.queue.queues"
local workers = require "jqlua.workers.workers"

local M = {}

local call = redis.call

local MOST_WORKERS = 2000

local known = {} -- its `groups`

local function set_of(names)
  local set = {}
  for _, name in ipairs(names) do
    set[name] = true
  end
  return set
end

--- Workers and channels, grouped by the queues that they name and the jobs that they refuse.
---@return table[] groups {queues, refused (set), workers, channels}
local function all()
  if known.groups then
    return known.groups
  end
  local groups, group_by_key = {}, {}
  known.groups = groups
  local function note(names, kind, refused)
    local key = table.concat(names, "\0") .. "\1" .. (refused and cmsgpack.pack(refused) or "")
    if not group_by_key[key] then
      group_by_key[key] = { queues = names, refused = refused or {}, workers = 0, channels = 0 }
      groups[#groups + 1] = group_by_key[key]
    end
    group_by_key[key][kind] = group_by_key[key][kind] + 1
  end
  for _, id in ipairs(call("ZRANGE", keys.WORKER_IDS, 0, MOST_WORKERS - 1)) do
    local record = workers.find(id)
    budget.pay(budget.LOOK)
    if record and not workers.is_gone(record) then
      note(record.q, "workers", record.r[1] and set_of(record.r))
    end
  end
  local sleepers = call("HGETALL", keys.SLEEPERS)
  for i = 1, #sleepers, 2 do
    if call("ZCOUNT", keys.ASLEEP .. sleepers[i], string.format("(%.0f", meta.state[meta.NOW_MS]), "+inf") > 0 then
      local names, refused = cmsgpack.unpack(sleepers[i + 1])
      note(names, "channels", refused)
    end
  end
  return groups
end

local function wants(list, name)
  for _, text in ipairs(list) do
    if queues.matches(text, name) then
      return true
    end
  end
  return false
end

---@param name string a queue
---@return number workers registered for it, or announced
---@return number channels on which workers wait for it
function M.counts(name)
  local present, channels = 0, 0
  for _, group in ipairs(all()) do
    budget.pay(budget.CONDITION * #group.queues)
    if wants(group.queues, name) then
      present, channels = present + group.workers, channels + group.channels
    end
  end
  return present, channels
end

--- Whether workers serve a queue but all of them refuse jobs of a name.
---@param name string the queue
---@param job_name string
---@return boolean
function M.is_unknown(name, job_name)
  local is_served = false
  for _, group in ipairs(all()) do
    if wants(group.queues, name) then
      if not group.refused[job_name] then
        return false
      end
      is_served = true
    end
  end
  return is_served
end

return M
