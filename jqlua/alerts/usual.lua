-- What is usual for a queue: how long its jobs wait and run, and how many of its attempts fail, in the last day or two
-- without the last hour or two; and what happened in the last minutes.
local buckets = require "jqlua.statistics.buckets"
local budget = require "jqlua.job.budget"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local statisticsdoc = require "jqlua.statistics.statisticsdoc"

local M = {}

local call = redis.call

local MINUTE_MS = 60000
local HOUR_MS = 3600000
local DAY_MS = 86400000
M.MINUTES = 5 -- that count as recent, with the current one
local ENOUGH = 20 -- of fewer nothing is usual
local DONE = 2
local FAILED = 3
local LAPSED = 4
local ERROR = 5

-- What this call has read: cells of the log, figures by queue, times by pair.
local known = { log = nil, queues = {}, recent = {}, pairs = {} }

local function period(letter, width, back)
  return letter .. math.floor(meta.state[meta.NOW_MS] / width) - back
end

--- Adds cells of a hash to a sum, or takes them away.
local function add(sum, raws, first, last, sign)
  for i = first, last do
    local cell = raws[i] and cmsgpack.unpack(raws[i])
    if cell and sign > 0 then
      buckets.add(sum, cell)
    elseif cell then
      for kind = DONE, ERROR do
        sum[kind] = sum[kind] - cell[kind]
      end
      local waits = cell[buckets.WAIT]
      for place, number in pairs(waits and sum[buckets.WAIT] and waits or {}) do
        if place == 1 or place >= buckets.STEPS then
          sum[buckets.WAIT][place] = math.max(0, (sum[buckets.WAIT][place] or 0) - number)
        end
      end
    end
  end
end

--- What is not in the statistics yet.
---@return table cells
local function logged()
  if not known.log then
    local log = call("GET", keys.LOG)
    known.log = buckets.cells(log)
    budget.pay(log and 10 * budget.of_bytes(log) or budget.LOOK)
  end
  return known.log
end

local function share_of(cell)
  local failures = cell[FAILED] + cell[LAPSED] + cell[ERROR]
  local ended = cell[DONE] + failures
  return failures, ended
end

---@param name string a queue
---@return table usual {wait_ms?: 95 % of its jobs waited no longer; share?: of its attempts that failed}; nil of what
--- there is too little of
function M.of_queue(name)
  local usual = known.queues[name]
  if usual then
    return usual
  end
  local sum = buckets.new()
  for _, key in ipairs({ name .. "\0", name .. "\0\0" }) do
    local raws = call("HMGET", keys.STATS .. key, period("d", DAY_MS, 0), period("d", DAY_MS, 1),
      period("h", HOUR_MS, 0), period("h", HOUR_MS, 1))
    add(sum, raws, 1, 2, 1)
    add(sum, raws, 3, 4, -1)
  end
  budget.pay(budget.RECORD)
  local failures, ended = share_of(sum)
  local waits = sum[buckets.WAIT]
  usual = {
    wait_ms = waits and waits[1] >= ENOUGH and statisticsdoc.distribution(waits, true).p95 or nil,
    share = ended >= ENOUGH and failures / ended or nil,
  }
  known.queues[name] = usual
  return usual
end

---@param queue string
---@param name string
---@return number? ms 95 % of the attempts that were done took no longer; nil of few
function M.run_ms(queue, name)
  local key = queue .. "\0" .. (name == queue and "" or name)
  if known.pairs[key] == nil then
    local sum = buckets.new()
    add(sum, call("HMGET", keys.STATS .. key, period("d", DAY_MS, 0), period("d", DAY_MS, 1)), 1, 2, 1)
    for _, cell in pairs(logged()[key] or {}) do
      buckets.add(sum, cell)
    end
    local runs = sum[buckets.RUN]
    budget.pay(budget.RECORD)
    known.pairs[key] = runs and runs[1] >= ENOUGH and statisticsdoc.distribution(runs, true).p95 or false
  end
  return known.pairs[key] or nil
end

local function sum_recent(hashes)
  local fields, sum, since, is_active = {}, buckets.new(), nil, false
  local first = math.floor(meta.state[meta.NOW_MS] / MINUTE_MS) - M.MINUTES + 1
  for i = 1, M.MINUTES do
    fields[i] = "m" .. first + i - 1
  end
  local function note(minute, cell)
    buckets.add(sum, cell)
    local failures, ended = share_of(cell)
    since = failures > 0 and math.min(since or minute, minute) or since
    is_active = is_active or ended > 0 and minute >= first + M.MINUTES - 2
  end
  for _, key in ipairs(hashes) do
    local raws = call("HMGET", keys.STATS .. key, unpack(fields))
    for i = 1, M.MINUTES do
      if raws[i] then
        note(first + i - 1, cmsgpack.unpack(raws[i]))
      end
    end
    for minute, cell in pairs(logged()[key] or {}) do
      if minute >= first then
        note(minute, cell)
      end
    end
  end
  budget.pay(budget.RECORD)
  local failures, ended = share_of(sum)
  return {
    failures = failures, ended = ended, lapsed = sum[LAPSED], since_ms = since and since * MINUTE_MS,
    is_active = is_active,
  }
end

--- What became of attempts in the last minutes.
---@param name? string a queue; nil for all
---@return table recent {failures, ended, lapsed, since_ms?: of the first minute with a failure, is_active: an attempt
--- ended in this minute or the one before}
function M.recent(name)
  local hashes = name and { name .. "\0", name .. "\0\0" } or { "\0" }
  known.recent[hashes[1]] = known.recent[hashes[1]] or sum_recent(hashes)
  return known.recent[hashes[1]]
end

return M
