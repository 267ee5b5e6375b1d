-- What is usual for a queue: how long its jobs wait, and how many of its attempts fail, in a day that ended an hour or
-- two ago; how long its jobs run, today and yesterday; and what happened in the last minutes.
local buckets = require "jqlua.statistics.buckets"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local statisticsdoc = require "jqlua.statistics.statisticsdoc"

local M = {}

local WIDTHS = { minute = 60000, hour = 3600000, day = 86400000 } -- ms of a bucket
M.MINUTES = 5 -- that count as recent, with the current one
local ENOUGH = 20 -- of fewer nothing is usual
local DONE = 2
local FAILED = 3
local LAPSED = 4
local ERROR = 5
local RELEASED = 7

local log = {} -- its `cells`, decoded once in a call
-- What was looked up in this call.
local known_runs = {}
local known_recent = {}

--- Sums up statistics.
---@param first number how many buckets ago the earliest is
---@param last number and the latest
---@param queue? string nil for all
---@param name? string of jobs
---@param each? fun(bucket: number, cell: table)
---@return table cell
---@return number from_ms
local function sum_of(by, first, last, queue, name, each)
  log.cells = log.cells or buckets.cells(redis.call("GET", keys.LOG))
  local width = WIDTHS[by]
  local current = math.floor(meta.state[meta.NOW_MS] / width)
  local period = {
    by = by, queue = queue, name = name, from_ms = (current - first) * width, to_ms = (current - last + 1) * width,
  }
  return statisticsdoc.sum(period, log.cells, each), period.from_ms
end

local function share_of(cell)
  local failures = cell[FAILED] + cell[LAPSED] + cell[ERROR]
  return failures, cell[DONE] + failures
end

--- The time that 95 % of some took no longer than.
---@param values? table of a cell
---@return number? ms nil of few
local function most_of(values)
  return values and values[1] >= ENOUGH and statisticsdoc.distribution(values, true).p95 or nil
end

---@param queue string
---@return table usual {wait_ms?: 95 % of its jobs waited no longer; share?: of its attempts that failed}; nil of what
--- there is too little of
function M.of_queue(queue)
  local sum = sum_of("hour", 25, 2, queue)
  local failures, ended = share_of(sum)
  return { wait_ms = most_of(sum[buckets.WAIT]), share = ended >= ENOUGH and failures / ended or nil }
end

---@param queue string
---@param name string
---@return number? ms 95 % of the attempts that were done took no longer; nil of few
function M.run_ms(queue, name)
  local pair = queue .. "\0" .. name
  if known_runs[pair] == nil then
    known_runs[pair] = most_of(sum_of("day", 1, 0, queue, name)[buckets.RUN]) or false
  end
  return known_runs[pair] or nil
end

--- What became of attempts in the last minutes.
---@param queue? string nil for all
---@param minutes? number the current one included; default: those that count as recent
---@return table recent {cell: the sums, failures, ended, from_ms, since_ms?: of the first minute with a failure,
--- is_active: an attempt was done, failed or was given back in this minute or the one before}
function M.recent(queue, minutes)
  minutes = minutes or M.MINUTES
  local name = minutes .. "\0" .. (queue or "")
  if not known_recent[name] then
    local recent, current = { is_active = false }, math.floor(meta.state[meta.NOW_MS] / WIDTHS.minute)
    recent.cell, recent.from_ms = sum_of("minute", minutes - 1, 0, queue, nil, function(minute, cell)
      if share_of(cell) > 0 then
        recent.since_ms = math.min(recent.since_ms or math.huge, minute * WIDTHS.minute)
      end
      recent.is_active = recent.is_active
        or minute >= current - 1 and cell[DONE] + cell[FAILED] + cell[ERROR] + cell[RELEASED] > 0
    end)
    recent.failures, recent.ended = share_of(recent.cell)
    recent.lapsed = recent.cell[LAPSED]
    known_recent[name] = recent
  end
  return known_recent[name]
end

return M
