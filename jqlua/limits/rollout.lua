---@lazy
-- Changes of constraints, carried out in steps. Until they are done, nothing starts in queues that have lanes.
--   a<number>  a new constraint: jobs that run and match take their units. At: queue, then (score, id) in it
--   r<number>  new limits, or none any more: its keys are looked at again. At: the last value
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local batch = require "jqlua.base.writes"
local constraint = require "jqlua.limits.constraint"
local due = require "jqlua.base.due"
local job = require "jqlua.job.record"
local matcher = require "jqlua.limits.matcher"
local queue = require "jqlua.queue.record"
local room = require "jqlua.limits.room"
local units = require "jqlua.limits.units"

local M = {}

local call = redis.call

-- In one call: that takes some milliseconds.
local MOST_AT_ONCE = 100
local spent = {}

M.KIND = "p" -- of what is due

local function name_of(kind, number)
  return kind .. string.format("%d", number)
end

--- Notes a change that is to be carried out.
---@param kind string a or r
function M.note(kind, number)
  call("HSET", keys.CHANGES, name_of(kind, number), "")
  meta.set(meta.PENDING, 1)
end

--- Whether a change is not yet carried out.
function M.is_noted(kind, number)
  return call("HEXISTS", keys.CHANGES, name_of(kind, number)) == 1
end

--- A running job that matches takes its unit.
local function adopt_job(definition, id)
  local of = job.read(id)
  if not of then
    return
  end
  local facts = constraint.facts(of)
  if not constraint.is_match(definition, facts, of) then
    return
  end
  local entry = constraint.entry(definition, facts, of)
  local own = units.of(of) or { string.rep("0", units.DIGEST), "", {}, {} }
  for _, known in ipairs(own[units.ENTRIES]) do
    if known[units.NAME] == entry[units.NAME] then
      return
    end
  end
  room.occupy(entry)
  table.insert(own[units.ENTRIES], entry)
  units.put(of, own)
  job.save(of)
end

--- Goes on through the jobs that run, in order of queue.
---@return number steps
---@return string? at nil when it is done
local function adopt(number, at, most)
  local definition = constraint.load_number(number)
  if not definition then
    return 1, nil
  end
  local place = at ~= "" and cmsgpack.unpack(at) or {}
  local steps = 0
  while steps < most do
    if not place.name then
      local from = place.last and "(" .. place.last or "-"
      place.name = call("ZRANGEBYLEX", keys.QUEUE_NAMES, from, "+", "LIMIT", 0, 1)[1]
      if not place.name then
        return steps + 1, nil
      end
    end
    steps = steps + 1
    local running = {}
    if matcher.test(definition.m, { queue = place.name }) ~= false then
      local key = queue.key(queue.load(place.name), "r")
      running = call("ZRANGEBYSCORE", key, place.score or "-inf", "+inf", "WITHSCORES", "LIMIT", place.skip or 0,
        most - steps + 1)
    end
    for i = 1, #running, 2 do
      adopt_job(definition, running[i])
    end
    local count = #running / 2
    steps = steps + count
    if steps <= most then
      place = { last = place.name }
    else
      -- Of those with the same score, so many were seen.
      local score, same = running[#running], 0
      for i = #running, 2, -2 do
        same = running[i] == score and same + 1 or same
      end
      place = {
        name = place.name, last = place.last, score = score, skip = same + (score == place.score and place.skip or 0),
      }
    end
  end
  return steps, cmsgpack.pack(place)
end

--- Goes on through the keys of a constraint.
local function review(number, at, most)
  local from = at == "" and "-" or "(" .. at:sub(2)
  local values = call("ZRANGEBYLEX", keys.KEYS_OF .. number, from, "+", "LIMIT", 0, most)
  for _, value in ipairs(values) do
    room.review(room.key(number, value))
  end
  return #values + 1, #values == most and "=" .. values[most] or nil
end

--- Carries out up to so many steps of what is pending.
---@return boolean done whether nothing is left
function M.carry_out(most)
  most = math.min(most, MOST_AT_ONCE - (spent[1] or 0))
  local steps = 0
  while steps < most do
    local change, at
    local known = call("HGETALL", keys.CHANGES)
    for i = 1, #known, 2 do
      if not change or known[i] < change then
        change, at = known[i], known[i + 1]
      end
    end
    if not change then
      meta.set(meta.PENDING, 0)
      meta.save_constraints()
      due.set(M.KIND, meta.NONE)
      return true
    end
    local number = tonumber(change:sub(2))
    local taken
    if change:sub(1, 1) == "a" then
      taken, at = adopt(number, at, most - steps)
    else
      taken, at = review(number, at, most - steps)
    end
    steps = steps + taken
    spent[1] = (spent[1] or 0) + taken
    if at then
      call("HSET", keys.CHANGES, change, at)
    else
      call("HDEL", keys.CHANGES, change)
    end
    batch.flush()
  end
  -- Who sleeps is woken for the rest: jobs may be ready then.
  due.note(M.KIND, due.AT_ONCE)
  return false
end

return M
