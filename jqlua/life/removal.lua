-- Removes records, with everything that refers to them.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local budget = require "jqlua.job.budget"
local batch = require "jqlua.base.batch"
local failure_groups = require "jqlua.links.failure_groups"
local jobs = require "jqlua.job.jobs"
local states = require "jqlua.job.states"
local queues = require "jqlua.queue.queues"
local tags = require "jqlua.links.tags"
local transition = require "jqlua.life.transition"
local unique = require "jqlua.links.unique"

local M = {}

local call = redis.call

local CHUNK = 20
local COST_OF_ONE = 0.35

--- Removes jobs from the indexes of tags and failures, and frees unique keys that are kept for them.
local function leave_indexes(letter, ids)
  local groups, extras = {}, {}
  for i, id in ipairs(letter == states.ERROR and ids or {}) do
    extras[i] = keys.EXTRA .. id
  end
  extras = extras[1] and call("MGET", unpack(extras))
  jobs.fetch(ids)
  for i, id in ipairs(ids) do
    local job = jobs.read(id)
    if job and job[jobs.OPTIONS] ~= "" then
      budget.pay(budget.of_job(job))
      tags.leave(job, id)
      unique.forget(job)
    end
    if extras then
      local group = failure_groups.group_of(extras[i])
      groups[group] = groups[group] or {}
      groups[group][#groups[group] + 1] = id
    end
  end
  for group, members in pairs(groups) do
    failure_groups.remove(group, members)
  end
end

--- Removes ended jobs everywhere; the caller flushes.
---@param letter string their state
---@param ids string[]
---@param is_bounded? boolean whether to stop when the call's budget is spent
---@return number removed
function M.remove(queue, letter, ids, is_bounded)
  local key = queues.key(queue, letter)
  for first = 1, #ids, CHUNK do
    if is_bounded and not budget.is_left() then
      return first - 1
    end
    local chunk = { unpack(ids, first, math.min(first + CHUNK - 1, #ids)) }
    if queues.has(queue, queues.INDEXED) then
      leave_indexes(letter, chunk)
    end
    for _, id in ipairs(chunk) do
      batch.remove(key, id)
      transition.forget(id, true)
    end
    budget.pay(#chunk * COST_OF_ONE)
  end
  return #ids
end

--- Removes jobs that do not run, with their records; waiting ones are cancelled first.
---@param list table[]
function M.discard(list)
  local now = meta.state[meta.NOW_MS]
  local ids, queue_of, letters = {}, {}, {}
  for _, job in ipairs(list) do
    local has_record = true
    if states.is_of(job[jobs.STATE], states.WAITING) then
      job[jobs.ENDED_MS] = now
      has_record = transition.move(job, states.CANCELLED, now)
    end
    if has_record then
      local queue, letter = queues.load(job[jobs.QUEUE]), job[jobs.STATE]
      local place = letter .. job[jobs.QUEUE]
      ids[place] = ids[place] or {}
      queue_of[place], letters[place] = queue, letter
      table.insert(ids[place], job[jobs.ID])
    end
    if job[jobs.OPTIONS] ~= "" then
      unique.forget(job, true)
    end
  end
  batch.flush() -- cancelled jobs must be in the sets that they are removed from
  for place, members in pairs(ids) do
    M.remove(queue_of[place], letters[place], members)
  end
end

return M
