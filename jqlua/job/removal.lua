---@lazy
-- Records that go: nothing may point at them any more.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local batch = require "jqlua.base.writes"
local failgroups = require "jqlua.job.failed"
local job = require "jqlua.job.record"
local queue = require "jqlua.queue.record"
local tagindex = require "jqlua.job.tags"
local transition = require "jqlua.life.transition"
local unique = require "jqlua.job.unique"

local M = {}

local call = redis.call

local ALL_FLAGS = 127
local CHUNK = 1000

local function facts(prefix, ids, first, last)
  local wanted = {}
  for i = first, last do
    wanted[i - first + 1] = prefix .. ids[i]
  end
  return call("MGET", unpack(wanted))
end

--- Takes jobs out of the indexes of tags and failures, and lets go of keys that are kept for them.
local function leave_indexes(letter, ids, first, last)
  local raws = facts(keys.JOB, ids, first, last)
  local extras = letter == "e" and facts(keys.EXTRA, ids, first, last) or {}
  local groups = {}
  for i, raw in ipairs(raws) do
    local id = ids[first + i - 1]
    local of = job.note(id, raw)
    if of and of[job.OPTIONS] ~= "" then
      tagindex.leave(of)
      unique.forget(of)
    end
    if letter == "e" then
      local group = failgroups.group_of(extras[i])
      groups[group] = groups[group] or {}
      groups[group][#groups[group] + 1] = id
    end
  end
  for group, members in pairs(groups) do
    failgroups.remove(group, members)
  end
end

--- Takes jobs that ended out of everything; the caller has that flushed.
---@param owner table the queue
---@param letter string their state
---@param ids string[]
function M.remove(owner, letter, ids)
  if queue.has(owner, queue.INDEXED) then
    for first = 1, #ids, CHUNK do
      leave_indexes(letter, ids, first, math.min(first + CHUNK - 1, #ids))
    end
  end
  local key = queue.key(owner, letter)
  for _, id in ipairs(ids) do
    batch.remove(key, id)
    transition.forget(id, ALL_FLAGS)
  end
end

--- Jobs that do not run go, with their records: those that wait are cancelled before.
---@param jobs table[]
function M.discard(jobs)
  local now = meta.state[meta.NOW_MS]
  local ids, owners, letters = {}, {}, {}
  for _, of in ipairs(jobs) do
    local has_record = true
    if string.find("qwsbt", of[job.STATE], 1, true) then
      of[job.ENDED_MS] = now
      has_record = transition.move(of, "c", now)
    end
    if has_record then
      local owner, letter = queue.load(of[job.QUEUE]), of[job.STATE]
      local key = queue.key(owner, letter)
      ids[key] = ids[key] or {}
      owners[key], letters[key] = owner, letter
      table.insert(ids[key], of[job.ID])
    elseif of[job.OPTIONS] ~= "" then
      unique.forget(of)
    end
  end
  batch.flush() -- who was cancelled must have come to where it is taken from
  for key, members in pairs(ids) do
    M.remove(owners[key], letters[key], members)
  end
end

return M
