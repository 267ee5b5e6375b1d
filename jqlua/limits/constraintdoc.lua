-- Documents of constraints and their keys.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local budget = require "jqlua.job.budget"
local check = require "jqlua.base.check"
local documents = require "jqlua.values.documents"
local constraints = require "jqlua.limits.constraints"
local lane_index = require "jqlua.limits.lane_index"
local keyrecord = require "jqlua.limits.keyrecord"
local parking = require "jqlua.limits.parking"
local room = require "jqlua.limits.room"

local M = {}

local call = redis.call
local pack = cmsgpack.pack

-- At most so many lanes that a key holds are counted.
local MOST_LANES = 1000

-- For the sums over a constraint's keys: how many are read at once.
local CHUNK = 100
-- Their budget in calls about several constraints.
local SHARE = 400

--- The MessagePack of a value in the form that names a key.
function M.value_blob(value)
  local kind, rest = value:sub(1, 1), value:sub(2)
  if kind == "n" then
    return "\192"
  elseif kind == "t" or kind == "f" then
    return pack(kind == "t")
  elseif kind == "d" then
    return pack(rest == "inf" and math.huge or rest == "-inf" and -math.huge or tonumber(rest) or 0 / 0)
  end
  rest = kind == "h" and "sha1:" .. rest:sub(2) or rest
  -- Who reads text expects UTF-8; other bytes are binary data.
  return check.message(rest, #rest) == rest and pack(rest) or struct.pack(">BI4", 0xC6, #rest) .. rest
end

--- The field `by` of a key.
---@return string? blob nil if the constraint has none
function M.by_blob(definition, value)
  if not definition.b then
    return nil
  elseif type(definition.bg) == "string" then
    return M.value_blob(value)
  end
  local blobs = constraints.split(value, #definition.b)
  for i, single in ipairs(blobs) do
    blobs[i] = M.value_blob(single)
  end
  return documents.list(blobs)
end

--- The lanes and jobs that a key holds.
---@param most? number of lanes that are counted
---@return table held {lanes, jobs, first: the job at the head of the first lane, is_more: not all lanes were counted}
function M.held_by(key, most)
  most = most or MOST_LANES
  local held, left, at = { lanes = 0, jobs = 0, first = false, is_more = false }, most, 1
  while at <= #key.queues and left > 0 do
    local counted = { lanes = 0, jobs = 0, first = held.first }
    local name, behind = struct.unpack(keyrecord.QUEUE, key.queues, at)
    left = lane_index.count(parking.index(key.name, name), left, counted)
    held.lanes, held.jobs, held.first = held.lanes + counted.lanes, held.jobs + counted.jobs, counted.first
    at = behind
  end
  budget.pay((most - left) * budget.LOOK)
  held.is_more = left <= 0
  return held
end

---@param most? number its limit, where it is another than the definition's
---@return table? rate as clients know it
function M.rate_of(definition, most)
  return definition.l and { limit = most or definition.l, period = definition.p }
end

--- What is in use of a key.
---@return table shown {running, opens_ms?, starts?, hold_ms?}
function M.use_of(key)
  return {
    running = key.in_use, starts = key.limit.rate > 0 and room.starts_in(key) or nil,
    opens_ms = room.opens_at(key), hold_ms = key.hold_ms > meta.state[meta.NOW_MS] and key.hold_ms or nil,
  }
end

--- The fields of one key.
---@return table shown
local function usage_of(key)
  local held, shown = M.held_by(key), M.use_of(key)
  shown.lanes, shown.held, shown.more = held.lanes, held.jobs, held.is_more or nil
  shown.next = held.first and call("ZRANGE", lane_index.jobs_key(held.first), 0, 0)[1] or nil
  return shown
end

--- Ranges of keys whose value, or the first of several, is text or a number with this prefix.
---@param prefix string
---@return table[] ranges in order, as of page.read
function M.ranges(definition, prefix)
  local ranges = {}
  local function add(before)
    for kind in ("dis"):gmatch(".") do
      local first = before .. kind .. prefix
      ranges[#ranges + 1] = { "[" .. first, "(" .. first .. "\255" }
    end
  end
  if not definition.b[2] then
    add("")
  else
    for size = 1 + #prefix, constraints.LONGEST_VALUE + 1 do -- each of several is preceded by its size
      add(string.char(size))
    end
  end
  return ranges
end

--- One key of a constraint.
---@return string document
function M.encode_key(definition, value)
  local shown = usage_of(keyrecord.load(definition.n, value))
  return documents.pack(shown, { by = M.by_blob(definition, value) })
end

--- Reads the keys of a constraint in order, within the budget.
---@param may_pay number units
---@return table sums {looked, running, held, full, is_more}
---@return table[] fullest {held, running, value}, by held jobs, then by running jobs
local function sum_up(definition, most, may_pay)
  local sums, fullest = { looked = 0, running = 0, held = 0, full = 0, is_more = false }, {}
  local ends, low = meta.state[meta.SPENT] + may_pay, "-"
  while meta.state[meta.SPENT] < ends and budget.is_left() do
    local values = call("ZRANGEBYLEX", keys.KEYS_OF .. definition.n, low, "+", "LIMIT", 0, CHUNK)
    for i, key in ipairs(values[1] and keyrecord.load_all(definition.n, values) or {}) do
      local held = M.held_by(key)
      local is_full = room.is_full(key) or room.opens_at(key) ~= nil
      sums.running, sums.held = sums.running + key.in_use, sums.held + held.jobs
      sums.is_more, sums.full = sums.is_more or held.is_more, sums.full + (is_full and 1 or 0)
      fullest[#fullest + 1] = { held.jobs, key.in_use, values[i] }
    end
    budget.pay(#values * budget.LOOK)
    sums.looked = sums.looked + #values
    if #values < CHUNK then
      break
    end
    low = "(" .. values[#values]
  end
  table.sort(fullest, function(a, b)
    return a[1] > b[1] or a[1] == b[1] and (a[2] > b[2] or a[2] == b[2] and a[3] < b[3])
  end)
  return sums, { unpack(fullest, 1, math.min(most, #fullest)) }
end

---@param definition table
---@param busiest? number how many of its fullest keys are listed, with sums over all
---@param is_only? boolean whether the call is about this one alone
---@return string document
function M.encode(definition, busiest, is_only)
  local blobs, shown = { match = definition.g }, {}
  if not definition.b then
    shown = usage_of(keyrecord.load(definition.n, ""))
  elseif busiest then
    local sums, fullest = sum_up(definition, busiest, is_only and budget.MOST or SHARE)
    shown = {
      looked = sums.looked, running = sums.running, held = sums.held, full = sums.full, more = sums.is_more or nil,
    }
    for i, key in ipairs(fullest) do
      fullest[i] = M.encode_key(definition, key[3])
    end
    budget.pay(#fullest * budget.DOCUMENT)
    blobs.busiest = documents.list(fullest)
  end
  shown.id, shown.by, shown.concurrency = definition.i, definition.bg, definition.tc or definition.c
  shown.rate = M.rate_of(definition, definition.tl)
  shown.shared = (definition.tc or definition.tl) and true
  shown.keys = call("ZCARD", keys.KEYS_OF .. definition.n)
  return documents.pack(shown, blobs)
end

return M
