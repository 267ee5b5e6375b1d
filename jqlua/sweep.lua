-- What is due by the clock, in bounded steps.
local keys = require "jqlua.keys"
local meta = require "jqlua.meta"
local settings = require "jqlua.settings"
local due = require "jqlua.due"
local index = require "jqlua.index"
local job = require "jqlua.job"
local queue = require "jqlua.queue"
local transition = require "jqlua.transition"
local failure = require "jqlua.failure"
local departure = require "jqlua.departure"
local worker = require "jqlua.worker"

local M = {}

local call = redis.call

local function due_ids(key, until_ms, limit)
  return call("ZRANGEBYSCORE", key, "-inf", until_ms, "LIMIT", 0, limit)
end

local function first_score(key)
  return tonumber(call("ZRANGE", key, 0, 0, "WITHSCORES")[2])
end

--- Does something with each due job of a set.
---@return number count
local function each_due(key, limit, what)
  local ids = due_ids(key, meta.state.now_ms, limit)
  for _, id in ipairs(ids) do
    local ripe = job.glance(id)
    if ripe then
      what(ripe)
    else
      index.remove(key, id) -- a record that somebody deleted by hand must not stop the clock
    end
  end
  return #ids
end

local function lapse(lapsed)
  failure.fail(lapsed, "l", "timeout", "the lease ran out", nil, true)
end

local function make_ready(ripe)
  transition.move(ripe, "q", ripe.priority)
  job.save(ripe)
end

---@cold
--- A kept result goes; its job is an ordinary done job from now on.
function M.drop_result(of)
  call("DEL", keys.OUTCOME .. of.id)
  job.clear(of, job.HAS_OUTCOME)
  if transition.move(of, "d", of.ended_ms) then
    job.save(of)
  end
end

local function remove(key, ids)
  for _, id in ipairs(ids) do
    index.remove(key, id)
    local gone = job.glance(id)
    if gone then
      transition.forget(gone)
    end
  end
  return #ids
end

--- Old records of one ended state: by age, then by number.
local function forget(owner, letter, limit)
  local key = index.key(letter, owner.name)
  local ttl_s, max = settings.retention(letter)
  local moved = remove(key, due_ids(key, meta.state.now_ms - ttl_s * 1000, limit))
  local surplus = math.min(call("ZCARD", key) - moved - max, limit - moved)
  if surplus > 0 then
    moved = moved + remove(key, call("ZRANGE", key, moved, moved + surplus - 1))
  end
  return moved
end

local function earliest(...)
  local least = meta.NONE
  for i = 1, select("#", ...) do
    local at_ms = (select(i, ...))
    if at_ms and at_ms < least then
      least = at_ms
    end
  end
  return least
end

local function ended_due(name, letter)
  local at_ms = first_score(index.key(letter, name))
  if not at_ms then
    return nil
  end
  local ttl_s, max = settings.retention(letter)
  return call("ZCARD", index.key(letter, name)) > max and meta.state.now_ms or at_ms + ttl_s * 1000
end

--- One kind of thing of one queue.
---@return number moved
local function sweep_queue(kind, name, limit)
  local owner = queue.load(name)
  -- Moves below may note the kind anew; what is noted here must not hide that.
  owner[kind] = meta.NONE
  local moved
  if kind == "r" then
    moved = each_due(index.key("r", name), limit, lapse)
  elseif kind == "w" then
    moved = each_due(keys.EXPIRING .. name, limit, failure.expire)
    -- An expired job must have left its set before the others are looked at.
    index.flush()
    for letter in ("st"):gmatch(".") do
      if moved < limit then
        moved = moved + each_due(index.key(letter, name), limit - moved, make_ready)
      end
    end
  else
    moved = each_due(index.key("k", name), limit, M.drop_result)
    index.flush()
    for letter in ("dec"):gmatch(".") do
      if moved < limit then
        moved = moved + forget(owner, letter, limit - moved)
      end
    end
  end
  index.flush()
  local next_ms
  if kind == "r" then
    next_ms = first_score(index.key("r", name))
  elseif kind == "w" then
    next_ms = earliest(first_score(index.key("s", name)), first_score(index.key("t", name)),
      first_score(keys.EXPIRING .. name))
  else
    next_ms = earliest(first_score(index.key("k", name)), ended_due(name, "d"), ended_due(name, "e"),
      ended_due(name, "c"))
  end
  owner[kind] = next_ms or meta.NONE
  owner.changed = true
  due.set(kind .. name, owner[kind])
  return moved
end

local function sweep_workers(limit)
  local ttl_ms = settings.at(settings.WORKER_TTL) * 1000
  local moved = 0
  for _, id in ipairs(due_ids(keys.ALIVE, meta.state.now_ms - ttl_ms, limit)) do
    local record = worker.load(id)
    if record then
      -- Nothing more for it, also when its jobs take more than this call to move.
      worker.rest(id, record, "unreachable", meta.state.now_ms + ttl_ms)
    end
    moved = moved + 1 + departure.jobs_fail(id, "the worker gave no sign of life", limit)
    if call("EXISTS", keys.HELD .. id) == 0 then
      departure.forget(id)
    end
    if moved >= limit then
      break
    end
  end
  local first_ms = first_score(keys.ALIVE)
  due.set("W", first_ms and first_ms + ttl_ms or meta.NONE)
  return moved
end

local function sweep_resting(limit)
  local ids = due_ids(keys.RESTING, meta.state.now_ms, limit)
  for _, id in ipairs(ids) do
    call("ZREM", keys.RESTING, id)
    local record = worker.load(id)
    if record then
      worker.place(id, record)
    end
  end
  due.set("B", first_score(keys.RESTING) or meta.NONE)
  return #ids
end

--- Retention settings changed: every queue's old records are due for a look, a page of queues at a time.
local function review(limit)
  local at = call("GET", keys.REVIEW)
  local names = call("ZRANGEBYLEX", keys.QUEUE_NAMES, at and "(" .. at or "-", "+", "LIMIT", 0, limit)
  for _, name in ipairs(names) do
    queue.note_due(queue.load(name), "e", meta.state.now_ms)
  end
  if #names < limit then
    call("DEL", keys.REVIEW)
    due.set("E", meta.NONE)
  else
    call("SET", keys.REVIEW, names[#names])
  end
  return #names
end

---@cold
--- Does up to limit steps and writes them. Afterwards meta.next_ms says when there is more.
---@return number moved
function M.run(limit)
  local state = meta.state
  local moved = 0
  while moved < limit do
    local head = call("ZRANGE", keys.DUE, 0, 0, "WITHSCORES")
    local at_ms = tonumber(head[2]) or meta.NONE
    state.next_due = at_ms
    if at_ms > state.now_ms then
      break
    end
    local kind, name = head[1]:sub(1, 1), head[1]:sub(2)
    -- A look that moves nothing counts as well: that is what bounds the call.
    local steps
    if kind == "W" then
      steps = sweep_workers(limit - moved)
    elseif kind == "B" then
      steps = sweep_resting(limit - moved)
    elseif kind == "E" then
      steps = review(limit - moved)
    else
      steps = sweep_queue(kind, name, limit - moved)
    end
    moved = moved + math.max(steps, 1)
    index.flush()
  end
  state.next_due = tonumber(call("ZRANGE", keys.DUE, 0, 0, "WITHSCORES")[2]) or meta.NONE
  transition.commit()
  return moved
end

return M
