-- Documents of statistics: the buckets, and what the log adds to them.
local keys = require "jqlua.base.keys"
local statlog = require "jqlua.statistics.statlog"
local meta = require "jqlua.base.meta"
local budget = require "jqlua.job.budget"
local buckets = require "jqlua.statistics.buckets"
local ordering = require "jqlua.values.ordering"

local M = {}

local call = redis.call

local CHUNK = 1000
local COST_OF_A_FIELD = 0.05 -- that may not exist
local LEVELS = { minute = "m", hour = "h", day = "d" }

--- The requested buckets that may exist, including future ones: the clock may have been set back.
---@return table {level, first, last, ms in a bucket}
local function range_of(spec)
  local level = LEVELS[spec.by]
  local width, kept = buckets.level(level)
  local current = math.floor(meta.state[meta.NOW_MS] / width)
  local first, last = current - kept + 1, current + kept
  if spec.from_ms then
    first = math.max(first, math.ceil(spec.from_ms / width))
  end
  if spec.to_ms then
    last = math.min(last, math.ceil(spec.to_ms / width) - 1)
  end
  return { level, first, last, width }
end

local log = {} -- its `cells`, decoded once in a call

local function pending()
  log.cells = log.cells or buckets.cells(statlog.read(), math.huge)
  return log.cells
end

--- Adds the cells of one hash and of the log.
---@param key string end of the hash's
---@param add fun(bucket: number, cell: table)
local function each_cell(key, range, add)
  local level, last = range[1], range[3]
  for first = range[2], last, CHUNK do
    local fields = {}
    for bucket = first, math.min(first + CHUNK - 1, last) do
      fields[#fields + 1] = level .. bucket
    end
    local raws = call("HMGET", keys.STATS .. key, unpack(fields))
    budget.pay(#fields * COST_OF_A_FIELD)
    for i = 1, #fields do
      if raws[i] then
        budget.pay(budget.of_bytes(raws[i]) + 2 * budget.LOOK)
        add(first + i - 1, cmsgpack.unpack(raws[i]))
      end
    end
  end
  for minute, cell in pairs(pending()[key] or {}) do
    local bucket = math.floor(minute * 60000 / range[4])
    if bucket >= range[2] and bucket <= last then
      add(bucket, cell)
    end
  end
end

--- The ends of the keys of the requested hashes.
local function keys_of(spec)
  local queue, name = spec.queue, spec.name
  if queue and name then
    return { queue .. "\0" .. (queue == name and "" or name) }
  elseif queue then
    return { queue .. "\0", queue .. "\0\0" }
  elseif name then
    return { name .. "\0", "\0" .. name }
  end
  return { "\0" }
end

local function percentile(summary, steps, share)
  local left = summary[1] * share
  for _, step in ipairs(steps) do
    left = left - step[2]
    if left <= 0 then
      return math.max(summary[3], math.min(summary[4], step[1]))
    end
  end
  return summary[4]
end

---@param summary table? as cells have it
---@param is_brief? boolean without the histogram
---@return table
function M.distribution(summary, is_brief)
  summary = summary or { 0, 0, 0, 0 }
  local steps = {}
  for place, number in pairs(summary) do
    if place >= buckets.STEPS then
      local step = place - buckets.STEPS
      steps[#steps + 1] = { step == 0 and 0 or math.floor(buckets.STEP ^ (step - 1)), number }
    end
  end
  table.sort(steps, function(a, b)
    return a[1] < b[1]
  end)
  return {
    count = summary[1], mean = summary[2] / math.max(summary[1], 1), min = summary[3], max = summary[4],
    p50 = percentile(summary, steps, 0.5), p90 = percentile(summary, steps, 0.9),
    p95 = percentile(summary, steps, 0.95), p99 = percentile(summary, steps, 0.99),
    histogram = not is_brief and steps or nil,
  }
end

local function filled(document, cell, is_brief)
  for place, kind in ipairs(buckets.KINDS) do
    document[kind] = cell[place]
  end
  document.wait = M.distribution(cell[buckets.WAIT], is_brief)
  document.run = M.distribution(cell[buckets.RUN], is_brief)
  return document
end

--- A document for each non-empty bucket, oldest first.
function M.buckets(spec)
  local range = range_of(spec)
  local sums, order = {}, {}
  for _, key in ipairs(keys_of(spec)) do
    each_cell(key, range, function(bucket, cell)
      if not sums[bucket] then
        sums[bucket] = buckets.new()
        order[#order + 1] = bucket
      end
      buckets.add(sums[bucket], cell)
    end)
  end
  table.sort(order)
  local reply = {}
  for i, bucket in ipairs(order) do
    reply[i] = cmsgpack.pack(filled({ begin_ms = bucket * range[4] }, sums[bucket], spec.brief))
  end
  return reply
end

--- Pairs behind the cursor, including those only in the log, in order.
local function pairs_behind(spec, most)
  local low, high = "-", "+"
  if spec.queue then
    low, high = "[" .. spec.queue .. "\0", "(" .. spec.queue .. "\1"
  end
  local cursor = spec.cursor or ""
  if cursor ~= "" and not (spec.queue and ordering.is_before(cursor, spec.queue .. "\0")) then
    low = "(" .. cursor
  end
  local listed = call("ZRANGEBYLEX", keys.STATS_PAIRS, low, high, "LIMIT", "0", most)
  local last = #listed == most and listed[most]
  local known = {}
  for _, key in ipairs(listed) do
    known[key] = true
  end
  for key in pairs(pending()) do
    if buckets.is_pair(key) and not known[key] and ordering.is_before(cursor, key)
      and (not last or ordering.is_before(key, last))
      and (not spec.queue or key:sub(1, #spec.queue + 1) == spec.queue .. "\0") then
      ordering.insert(listed, key)
    end
  end
  return listed, not last
end

--- One document for each pair of queue and name.
---@return table {cursor, document, ...}
function M.series(spec)
  local range = range_of(spec)
  local listed, is_end = pairs_behind(spec, spec.count or 100)
  local reply = { is_end and "" or listed[#listed] }
  for i, key in ipairs(listed) do
    local queue, name = key:match("^(%Z*)%z(.*)$")
    name = name == "" and queue or name
    if not spec.name or spec.name == name then
      local sum, is_active = buckets.new(), false
      each_cell(key, range, function(_, cell)
        is_active = true
        buckets.add(sum, cell)
      end)
      if is_active then
        reply[#reply + 1] = cmsgpack.pack(filled({ queue = queue, name = name }, sum, spec.brief))
      end
    end
    if not budget.pay(budget.LOOK) and i < #listed then
      reply[1] = key
      break
    end
  end
  return reply
end

-- What is usual for a queue, and what happened in the last minutes ----------------------------------------------------

local MINUTE_MS = 60000
M.MINUTES = 5 -- that count as recent, with the current one
local ENOUGH = 20 -- of fewer nothing is usual

-- What was looked up in this call.
local known_runs = {}
local known_recent = {}

--- The sums of some buckets.
---@param first number how many buckets ago the earliest is
---@param last number and the latest
---@param about table {queue?, name?}
---@param each? fun(bucket: number, cell: table)
---@return table cell
---@return number from_ms
local function sum_of(by, first, last, about, each)
  local level, sum = LEVELS[by], buckets.new()
  local width = buckets.level(level)
  local current = math.floor(meta.state[meta.NOW_MS] / width)
  for _, key in ipairs(keys_of(about)) do
    each_cell(key, { level, current - first, current - last, width }, function(bucket, cell)
      if each then
        each(bucket, cell)
      end
      buckets.add(sum, cell)
    end)
  end
  return sum, (current - first) * width
end

--- What happened since midnight UTC.
---@param queue string
---@return table document
function M.today(queue)
  return filled({}, (sum_of("day", 0, 0, { queue = queue })))
end

local function share_of(cell)
  local failures = cell[statlog.FAILED] + cell[statlog.LAPSED] + cell[statlog.ERROR]
  return failures, cell[statlog.DONE] + failures
end

--- The time that 95 % of some took no longer than.
---@param values? table of a cell
---@return number? ms nil of few
local function most_of(values)
  return values and values[1] >= ENOUGH and M.distribution(values, true).p95 or nil
end

---@param queue string
---@return table usual {wait_ms?: 95 % of its jobs waited no longer; share?: of its attempts that failed}; nil of what
--- there is too little of
function M.of_queue(queue)
  local cell = sum_of("hour", 25, 2, { queue = queue })
  local failures, ended = share_of(cell)
  return { wait_ms = most_of(cell[buckets.WAIT]), share = ended >= ENOUGH and failures / ended or nil }
end

---@param queue string
---@param name string
---@return number? ms 95 % of the attempts that were done took no longer; nil of few
function M.run_ms(queue, name)
  local pair = queue .. "\0" .. name
  if known_runs[pair] == nil then
    known_runs[pair] = most_of(sum_of("day", 1, 0, { queue = queue, name = name })[buckets.RUN]) or false
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
    local recent, current = { is_active = false }, math.floor(meta.state[meta.NOW_MS] / MINUTE_MS)
    recent.cell, recent.from_ms = sum_of("minute", minutes - 1, 0, { queue = queue }, function(minute, cell)
      if share_of(cell) > 0 then
        recent.since_ms = math.min(recent.since_ms or math.huge, minute * MINUTE_MS)
      end
      local worked = cell[statlog.DONE] + cell[statlog.FAILED] + cell[statlog.ERROR] + cell[statlog.RELEASED]
      recent.is_active = recent.is_active or minute >= current - 1 and worked > 0
    end)
    recent.failures, recent.ended = share_of(recent.cell)
    recent.lapsed = recent.cell[statlog.LAPSED]
    known_recent[name] = recent
  end
  return known_recent[name]
end

return M
