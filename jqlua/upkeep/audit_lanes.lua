-- Audit of lanes and constraints: every job that waits in a lane is in it, every lane with jobs is in an index at its
-- head or before, keys have in use what the jobs have taken.
local budget = require "jqlua.job.budget"
local keys = require "jqlua.base.keys"
local rollout = require "jqlua.limits.rollout"
local constraints = require "jqlua.limits.constraints"
local findings = require "jqlua.upkeep.findings"
local jobs = require "jqlua.job.jobs"
local members = require "jqlua.queue.members"
local states = require "jqlua.job.states"
local queues = require "jqlua.queue.queues"
local rank = require "jqlua.base.rank"
local lane_index = require "jqlua.limits.lane_index"
local keyrecord = require "jqlua.limits.keyrecord"
local parking = require "jqlua.limits.parking"
local job_units = require "jqlua.limits.job_units"

local M = {}

local call = redis.call
local expect = findings.expect

-- Larger sets are not counted.
local MOST_MEMBERS = 500
-- Jobs and queues to read for the units that jobs have taken, and bytes of these; if there are more they are not
-- compared.
local MOST_COUNTED = 1000
local MOST_BYTES = 20000

-- First entries of lanes, by index; false for an index that is too large.
M.entries = {}

---@return table|false entries {priority, id} by lane
local function entries_of(at)
  if M.entries[at] == nil then
    local entries = call("ZCARD", at) <= MOST_MEMBERS and {}
    local flat = entries and call("ZRANGE", at, 0, -1, "WITHSCORES") or {}
    budget.pay(#flat / 2 * budget.LOOK)
    for i = 1, #flat, 2 do
      local member = flat[i]
      local lane = member:sub(24)
      entries[lane] = entries[lane] or { tonumber(flat[i + 1]), member:sub(9, 22) }
    end
    M.entries[at] = entries
  end
  return M.entries[at]
end

---@return boolean # whether the index has an entry of the lane no later than its head
local function has_entry(index, group, lane, priority, id)
  local entries = entries_of(lane_index.node(index, group))
  local entry = entries and entries[lane]
  return not entries or (entry ~= nil and not rank.is_before(priority, id, entry[1], entry[2]))
end

---@param lane string
function M.check_lane(lane)
  local first = call("ZRANGE", keys.LANE .. lane, 0, 0, "WITHSCORES")
  local job = first[1] and jobs.read(first[1])
  local units = job and job[jobs.STATE] == states.IN_LANE and job_units.of(job)
  if not units or units[job_units.LANE] ~= lane then
    return expect(false, "lane", lane, "holds", tostring(first[1]), "which does not wait in it")
  end
  local priority, id = tonumber(first[2]), first[1]
  local name, group = job[jobs.QUEUE], units[job_units.GROUP]
  if has_entry(keys.LANES .. name, group, lane, priority, id) then
    return
  end
  for _, entry in ipairs(units[job_units.ENTRIES]) do
    if has_entry(parking.index(entry[job_units.NAME], name), group, lane, priority, id) then
      return
    end
  end
  expect(false, "lane", lane, "of queue", name, "has jobs and stands nowhere")
end

-- [1]: units that jobs have, by key, counted once in a call; false if they are too many.
M.counted = {}

---@return table? taken by name of the key
local function count_taken()
  local taken, looks, bytes = {}, 0, 0
  for _, name in ipairs(call("ZRANGE", keys.QUEUE_NAMES, 0, MOST_COUNTED)) do
    local ids = members.ids(queues.load(name), states.RUNNING, MOST_COUNTED)
    looks = looks + 1 + #ids
    for _, id in ipairs(looks <= MOST_COUNTED and ids or {}) do
      local job = jobs.read(id)
      local units = job and job_units.of(job)
      bytes = bytes + (units and #units[job_units.BYTES] or 0)
      for _, entry in ipairs(units and bytes <= MOST_BYTES and units[job_units.ENTRIES] or {}) do
        local name_of_key = entry[job_units.NAME]
        taken[name_of_key] = (taken[name_of_key] or 0) + 1
      end
    end
    if looks > MOST_COUNTED or bytes > MOST_BYTES then
      return nil
    end
  end
  return taken
end

--- How many units of a key jobs have.
---@param name string
---@return number? nil if there are too many jobs to say
local function taken_of(name)
  if M.counted[1] == nil then
    M.counted[1] = count_taken() or false
  end
  return M.counted[1] and (M.counted[1][name] or 0) or nil
end

---@param name string number:value
function M.check_key(name)
  local number, value = job_units.split_name(name)
  local key = keyrecord.load(number, value)
  expect(call("ZSCORE", keys.KEYS_OF .. string.format("%d", number), value),
    "key", name, "is missing among those of its constraint")
  if not key.limit then
    -- Keys due for a check may be removed then.
    return expect(key.queues ~= "" or rollout.is_pending(string.format("%d", number)),
      "key", name, "is of no constraint, and holds nothing")
  end
  local taken = taken_of(name)
  expect(not taken or taken == key.in_use, "key", name, "has in use", key.in_use, "but jobs have", taken)
end

---@param number string
function M.check_limit(number)
  local limit = keyrecord.limit(tonumber(number))
  local definition = constraints.load(limit.id)
  expect(definition and definition.n == tonumber(number), "limits", number, "are of no constraint")
end

--- Checks the index of a queue's lanes against the bound of its best job.
---@param name string
function M.check_index(name)
  local queue = queues.load(name)
  local least = lane_index.least_priority(queue)
  expect(not (least and queues.is_listed(queue)) or queue[queues.HEAD_PRIORITY] <= least,
    "queue", name, "has a lane better than its bound says")
  expect(queues.has(queue, queues.LANED), "queue", name, "has lanes and does not know it")
end

return M
