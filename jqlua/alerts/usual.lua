-- What is usual for a queue: how long its jobs wait, and how many of its attempts fail, in a day that ended an hour or
-- two ago; how long its jobs run, today and yesterday; and what happened in the last minutes.
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

-- What this call has read: cells of the log, what happened lately by queue, times by pair.
local logs = {}
local known_recent = {}
local known_pairs = {}

--- Sums up cells of statistics.
---@param hashes string[] ends of the hashes' keys
---@param letter string m, h or d
---@param width number ms of a bucket
---@param first number how many buckets ago the latest is
---@param last number and the earliest
---@param note? fun(bucket: number, cell: table)
---@return table cell
local function sum_of(hashes, letter, width, first, last, note)
  local sum, fields, current = buckets.new(), {}, math.floor(meta.state[meta.NOW_MS] / width)
  for back = first, last do
    fields[#fields + 1] = letter .. current - back
  end
  for _, key in ipairs(hashes) do
    for i, raw in ipairs(call("HMGET", keys.STATS .. key, unpack(fields))) do
      local cell = raw and cmsgpack.unpack(raw)
      budget.pay(raw and 2 * budget.LOOK + budget.of_bytes(raw) or 0)
      if cell then
        buckets.add(sum, cell)
      end
      if cell and note then
        note(current - first - i + 1, cell)
      end
    end
  end
  budget.pay(budget.RECORD)
  return sum
end

local function pairs_of(queue)
  return { queue .. "\0", queue .. "\0\0" }
end

--- What is not in the statistics yet.
---@return table cells
local function logged()
  if not logs[1] then
    local log = call("GET", keys.LOG)
    logs[1] = buckets.cells(log)
    budget.pay(log and 10 * budget.of_bytes(log) or budget.LOOK)
  end
  return logs[1]
end

local function share_of(cell)
  local failures = cell[FAILED] + cell[LAPSED] + cell[ERROR]
  local ended = cell[DONE] + failures
  return failures, ended
end

--- The time that 95 % of some took no longer than.
---@param values? table of a cell
---@return number? ms nil of few
local function most_of(values)
  return values and values[1] >= ENOUGH and statisticsdoc.distribution(values, true).p95 or nil
end

---@param name string a queue
---@return table usual {wait_ms?: 95 % of its jobs waited no longer; share?: of its attempts that failed}; nil of what
--- there is too little of
function M.of_queue(name)
  local sum = sum_of(pairs_of(name), "h", HOUR_MS, 2, 25)
  local failures, ended = share_of(sum)
  return { wait_ms = most_of(sum[buckets.WAIT]), share = ended >= ENOUGH and failures / ended or nil }
end

---@param queue string
---@param name string
---@return number? ms 95 % of the attempts that were done took no longer; nil of few
function M.run_ms(queue, name)
  local key = queue .. "\0" .. (name == queue and "" or name)
  if known_pairs[key] == nil then
    local sum = sum_of({ key }, "d", DAY_MS, 0, 1)
    for _, cell in pairs(logged()[key] or {}) do
      buckets.add(sum, cell)
    end
    known_pairs[key] = most_of(sum[buckets.RUN]) or false
  end
  return known_pairs[key] or nil
end

local function sum_recent(hashes)
  local since, is_active = nil, false
  local current = math.floor(meta.state[meta.NOW_MS] / MINUTE_MS)
  local function note(minute, cell)
    local failures, ended = share_of(cell)
    since = failures > 0 and math.min(since or minute, minute) or since
    is_active = is_active or ended > 0 and minute >= current - 1
  end
  local sum = sum_of(hashes, "m", MINUTE_MS, 0, M.MINUTES - 1, note)
  for _, key in ipairs(hashes) do
    for minute, cell in pairs(logged()[key] or {}) do
      if minute > current - M.MINUTES then
        buckets.add(sum, cell)
        note(minute, cell)
      end
    end
  end
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
  local hashes = name and pairs_of(name) or { "\0" }
  known_recent[hashes[1]] = known_recent[hashes[1]] or sum_recent(hashes)
  return known_recent[hashes[1]]
end

return M
