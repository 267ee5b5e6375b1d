-- The jobs of a queue in a state, as members of the set that holds them (module job.states): their scores without what
-- tells the states of one set apart.
local batch = require "jqlua.base.batch"
local jobs = require "jqlua.job.jobs"
local queues = require "jqlua.queue.queues"
local rank = require "jqlua.base.rank"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

--- The scores of a state, as commands take them.
---@return string|number low
---@return string high
local function range(state)
  local base, top = states.band(state)
  return base > 0 and base or "-inf", top < math.huge and string.format("(%.0f", top) or "+inf"
end

---@return number
function M.count(queue, state)
  return call("ZCOUNT", queues.key(queue, state), range(state))
end

---@return number? score nil if the job is not in the set of its state
function M.score(job)
  local state = job[jobs.STATE]
  local score = call("ZSCORE", queues.key(queues.load(job[jobs.QUEUE]), state), job[jobs.ID])
  return score and tonumber(score) - states.band(state) or nil
end

--- Buffers a job's new score; it is in the set, or in none.
---@param score number
function M.add(queue, state, score, id)
  batch.add(queues.key(queue, state), score + states.band(state), id)
end

---@return number? score the least
function M.first_score(queue, state)
  local low, high = range(state)
  local first = call("ZRANGEBYSCORE", queues.key(queue, state), low, high, "WITHSCORES", "LIMIT", "0", "1")
  return first[2] and tonumber(first[2]) - states.band(state)
end

---@param most number
---@param is_reversed? boolean from the greatest score on
---@return string[] ids
function M.ids(queue, state, most, is_reversed)
  local low, high = range(state)
  if is_reversed then
    return call("ZRANGE", queues.key(queue, state), high, low, "BYSCORE", "REV", "LIMIT", "0", most)
  end
  return call("ZRANGEBYSCORE", queues.key(queue, state), low, high, "LIMIT", "0", most)
end

---@param until_ms number
---@return string[] ids whose score is at most that
function M.due(queue, state, until_ms, most)
  local low, base = range(state), states.band(state)
  return call("ZRANGEBYSCORE", queues.key(queue, state), low, base + until_ms, "LIMIT", "0", most)
end

--- The next members behind a position, as of rank.next.
---@param at table? {score, id}
---@return table[] members {score, id}
function M.next(queue, state, at, most, is_reversed)
  local base, top = states.band(state)
  if top < math.huge then
    at = at and { base + at[1], at[2] } or { is_reversed and top or base, "" }
  end
  local members = {}
  for i, member in ipairs(rank.next(queues.key(queue, state), at, most, is_reversed)) do
    if member[1] < base and top < math.huge or member[1] >= top then
      break
    end
    members[i] = { member[1] - base, member[2] }
  end
  return members
end

return M
