-- Statistics of jobs by minute, hour and day.
--
-- One hash for each pair of queue and name. The common job's name is its queue's; so that any query reads two
-- hashes at most, jobs of other names are counted once more for their queue and for their name:
--   queue 0          jobs of the queue's own name          queue 0 0    its other jobs, of all names together
--   queue 0 name     jobs of another name                  0 name       jobs of that name in other queues, together
--   0                everything
-- Fields: m, h or d and the number of minutes, hours or days since 1970; the empty field is the minute of the last look
-- for old ones. Values: a *cell*, packed: counts in the order of KINDS, behind them what is known of waits and of runs:
-- count, sum, least, greatest, and from STEPS on how many were in each step of a histogram.
local keys = require "jqlua.base.keys"
local statlog = require "jqlua.statistics.statlog"

local M = {}

local call = redis.call

M.KINDS = { "enqueued", "done", "failed", "lapsed", "error", "cancelled", "released", "moved", "skipped" }
M.WAIT = 10
M.RUN = 11
M.STEPS = 5
M.STEP = 1.2 -- the end of a step over its beginning
local LOG_STEP = 0.182321556793955
local NONE = statlog.NONE

-- An item of the log has so many values; its kind, wait, run and count stand behind the first.
local SIZE = 6
local KIND = 2
local WAIT = 3
local RUN = 4
local COUNT = 5

local AT_ONCE = 50 -- items that are read at once: a longer list costs more
local MOST_CELLS = 50 -- in one call, about: to save one takes 0.1 ms

local MINUTES = { m = 1, h = 60, d = 1440 } -- in a bucket
local RETAINED = { m = 180, h = 192, d = 400 } -- buckets

local EXPIRE_S = 401 * 86400
local LOOK_EVERY = 30 -- minutes
local LOOKED_AT = 8000 -- fields in one call, about
local CHUNK = 3000
local SMALL = 1024 -- ms

---@param level string m, h or d
---@return number ms in a bucket
---@return number how many are kept
function M.level(level)
  return MINUTES[level] * 60000, RETAINED[level]
end

local steps = KEPT -- of small values

-- Step 0 is 0 ms; step n is up to STEP ^ (n - 1).
local function step_of(ms)
  local step = ms > 0 and M.STEPS + 1 + math.ceil(math.log(ms) / LOG_STEP) or M.STEPS
  if ms < SMALL then
    steps[ms] = step
  end
  return step
end

local function none()
  return { 0, 0, math.huge, 0 }
end

--- Adds the waits or runs of items to those of a cell.
---@param place number WAIT or RUN
---@param column number of these in an item; the first item begins at `first`, the last one ends before `behind`
local function note(cell, place, items, column, first, behind)
  local values = cell[place] or none()
  local count, sum, least, greatest = values[1], values[2], values[3], values[4]
  for i = first, behind - 1, SIZE do
    local ms, times = items[i + column], items[i + COUNT]
    if ms < NONE then
      count, sum = count + times, sum + ms * times
      if ms < least then
        least = ms
      end
      if ms > greatest then
        greatest = ms
      end
      local step = steps[ms] or step_of(ms)
      values[step] = (values[step] or 0) + times
    end
  end
  values[1], values[2], values[3], values[4] = count, sum, least, greatest
  cell[place] = count > 0 and values or nil
end

---@return table cell
function M.new()
  return { 0, 0, 0, 0, 0, 0, 0, 0, 0 }
end

--- Adds a cell to another.
function M.add(to, from)
  for i = 1, #M.KINDS do
    to[i] = to[i] + from[i]
  end
  for place = M.WAIT, M.RUN do
    local values, more = to[place] or none(), from[place]
    if more then
      to[place] = values
      values[3], values[4] = math.min(values[3], more[3]), math.max(values[4], more[4])
      for i, number in pairs(more) do
        if i < 3 or i >= M.STEPS then
          values[i] = (values[i] or 0) + number
        end
      end
    end
  end
end

local function cell_of(cells, key, minute)
  local minutes = cells[key]
  if not minutes then
    minutes = {}
    cells[key] = minutes
  end
  local cell = minutes[minute]
  if not cell then
    cell = M.new()
    minutes[minute] = cell
  end
  return cell
end

--- Parses a log, from its begin on.
---@param most number of so many cells the rest is left, if that is no full log
---@return table cells by queue and 0 byte and name (empty if it is the queue's), and minute
---@return string rest
local function parse(log, most)
  local cells, count, next_at = {}, 0, 0
  repeat
    local items, at = { cmsgpack.unpack_limit(log, AT_ONCE * SIZE, next_at) }, 2
    while items[at] do
      local first, minute, pair = at, items[at], items[at + 1]
      count = count + (cells[pair] and cells[pair][minute] and 0 or 1)
      local cell = cell_of(cells, pair, minute)
      repeat -- until those of another subject begin
        local kind = items[at + KIND]
        cell[kind] = cell[kind] + items[at + COUNT]
        at = at + SIZE
      until items[at] ~= minute or items[at + 1] ~= pair
      note(cell, M.WAIT, items, WAIT, first, at)
      note(cell, M.RUN, items, RUN, first, at)
    end
    next_at = items[1] < 0 and #log or items[1]
  until next_at == #log or count >= most and #log - next_at <= statlog.FULL
  return cells, log:sub(next_at + 1)
end

--- Parses a log, with the sums of queues, names and everything.
---@param log string
---@param most number as of parse
---@return table cells by the ends of the hashes' keys, and minute
---@return string rest
function M.cells(log, most)
  local cells = {}
  local parsed, rest = parse(log, most)
  for pair, minutes in pairs(parsed) do
    cells[pair] = minutes
    local queue, name = pair:match("^(%Z*)%z(.*)$")
    for minute, cell in pairs(minutes) do
      M.add(cell_of(cells, "\0", minute), cell)
      if name ~= "" then
        M.add(cell_of(cells, queue .. "\0\0", minute), cell)
        M.add(cell_of(cells, "\0" .. name, minute), cell)
      end
    end
  end
  return cells, rest
end

---@param key string end of a hash's
---@return boolean whether it is that of a pair
function M.is_pair(key)
  return key:byte() ~= 0 and key:sub(-2) ~= "\0\0"
end

--- Removes pairs whose statistics have expired from the list: each pair in use checks those behind it.
local function look_behind(pair)
  local behind = call("ZRANGEBYLEX", keys.STATS_PAIRS, "(" .. pair, "+", "LIMIT", 0, 2)
  if not behind[1] then
    behind = call("ZRANGEBYLEX", keys.STATS_PAIRS, "-", "(" .. pair, "LIMIT", 0, 2)
  end
  for _, other in ipairs(behind) do
    if call("EXISTS", keys.STATS .. other) == 0 then
      call("ZREM", keys.STATS_PAIRS, other)
    end
  end
end

--- Removes buckets that are not kept any longer.
---@param minute number the current one
---@return number count of fields checked
local function trim(key, minute)
  local fields = call("HKEYS", keys.STATS .. key)
  local old = {}
  for _, field in ipairs(fields) do
    local level = field:sub(1, 1)
    if level ~= "" and tonumber(field:sub(2)) <= math.floor(minute / MINUTES[level]) - RETAINED[level]
      and #old < CHUNK then
      old[#old + 1] = field
    end
  end
  if old[1] then
    call("HDEL", keys.STATS .. key, unpack(old))
  end
  call("EXPIRE", keys.STATS .. key, EXPIRE_S)
  if M.is_pair(key) then
    look_behind(key)
  end
  return #fields
end

--- Adds to the buckets of one hash.
---@param minutes table cells by minute
---@param left table [1]: fields that may still be checked in this call
local function save(key, minutes, left)
  local fields, cells = { "" }, {}
  local latest = 0
  for minute, cell in pairs(minutes) do
    latest = math.max(latest, minute)
    for level, width in pairs(MINUTES) do
      local field = level .. (minute - minute % width) / width
      if not cells[field] then
        cells[field] = {}
        fields[#fields + 1] = field
      end
      table.insert(cells[field], cell)
    end
  end
  local raws = call("HMGET", keys.STATS .. key, unpack(fields))
  local sets = {}
  for i = 2, #fields do
    local field = fields[i]
    local sum = raws[i] and cmsgpack.unpack(raws[i]) or M.new()
    for _, cell in ipairs(cells[field]) do
      M.add(sum, cell)
    end
    sets[2 * i - 3], sets[2 * i - 2] = field, cmsgpack.pack(sum)
  end
  local looked = tonumber(raws[1])
  local is_due = not looked or (latest >= looked + LOOK_EVERY or latest < looked) and left[1] > 0
  if is_due then
    sets[#sets + 1], sets[#sets + 2] = "", latest
  end
  call("HSET", keys.STATS .. key, unpack(sets))
  if not looked then
    call("EXPIRE", keys.STATS .. key, EXPIRE_S)
    if M.is_pair(key) then
      call("ZADD", keys.STATS_PAIRS, "0", key)
    end
  elseif is_due then
    left[1] = left[1] - trim(key, latest)
  end
end

--- Folds the log into the buckets; one of many queues or minutes in several calls.
---@param most? number as of parse; default: few ms
function M.fold(most)
  local cells, rest = M.cells(statlog.read(), most or MOST_CELLS)
  local left = { LOOKED_AT }
  statlog.replace(rest)
  for key, minutes in pairs(cells) do
    save(key, minutes, left)
  end
end

--- Removes the statistics of a queue that are its own. None may be in the log any more.
function M.forget(queue)
  local first, last = "[" .. queue .. "\0", "(" .. queue .. "\1"
  repeat
    local pairs_of_queue = call("ZRANGEBYLEX", keys.STATS_PAIRS, first, last, "LIMIT", "0", CHUNK)
    local unwanted = { keys.STATS .. queue .. "\0\0" }
    for i, pair in ipairs(pairs_of_queue) do
      unwanted[i + 1] = keys.STATS .. pair
    end
    call("UNLINK", unpack(unwanted))
    if pairs_of_queue[1] then
      call("ZREM", keys.STATS_PAIRS, unpack(pairs_of_queue))
    end
  until #pairs_of_queue < CHUNK
end

return M
