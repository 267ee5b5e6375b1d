---@lazy
-- Checks records of systems before they are kept (docs/partitions.md, "The record").
local check = require "jqlua.base.check"
local elsewhere = require "jqlua.links.elsewhere"

local M = {}

local FIELDS = "format generation partitions buckets routes former moving moved_ms"
local STATES = { joining = true, active = true, draining = true, closed = true, lost = true }
local BUCKETS = elsewhere.BUCKETS
local FEWEST, MOST = 2, 256
local MOST_ROUTES = 1000
local MOST_MS = 2 ^ 53
local ROUTES = "a map of at most " .. MOST_ROUTES .. " queues with a path each"

local function partition_problem(path, one)
  if not check.is_list(one, 2, 2) or type(one[1]) ~= "string" or not STATES[one[2]] then
    return check.problem(path, "a list: [namespace, joining, active, draining, closed or lost]", one)
  end
end

local function check_partitions(partitions)
  if not check.is_list(partitions, FEWEST, MOST) then
    return check.problem("record.partitions", "a list of 2 to 256 partitions", partitions)
  end
  for i, one in ipairs(partitions) do
    local problem = partition_problem("record.partitions[" .. i - 1 .. "]", one)
    if problem then
      return problem
    end
  end
  local _, digits = elsewhere.own()
  local own = partitions[tonumber(digits, 16) + 1]
  if not own or own[1] ~= KEYS[1] then
    return "INVALID record.partitions: this namespace is not in it"
  end
end

local function check_buckets(buckets, count)
  if not check.is_list(buckets, BUCKETS, BUCKETS) then
    return check.problem("record.buckets", "a list of 1024 numbers of partitions", buckets)
  end
  for i, number in ipairs(buckets) do
    if not check.is_integer(number, 0, count - 1) then
      return check.problem("record.buckets[" .. i - 1 .. "]", "the number of a partition", number)
    end
  end
end

--- Where buckets were before, and which are about to move.
local function check_moves(former, moving, count)
  if former ~= nil and type(former) ~= "table" then
    return check.problem("record.former", "a map of buckets to partitions", former)
  elseif moving ~= nil and not check.is_list(moving, 0, BUCKETS) then
    return check.problem("record.moving", "a list of at most 1024 buckets", moving)
  end
  for bucket, number in pairs(former or {}) do
    if not check.is_integer(bucket, 0, BUCKETS - 1) or not check.is_integer(number, 0, count - 1) then
      return check.problem("record.former", "a map of buckets to partitions", former)
    end
  end
  for i, bucket in ipairs(moving or {}) do
    if not check.is_integer(bucket, 0, BUCKETS - 1) then
      return check.problem("record.moving[" .. i - 1 .. "]", "a bucket, an integer from 0 to 1023", bucket)
    end
  end
end

local function check_routes(routes)
  if routes == nil then
    return nil
  elseif type(routes) ~= "table" then
    return check.problem("record.routes", ROUTES, routes)
  end
  local count = 0
  for queue, path in pairs(routes) do
    count = count + 1
    if count > MOST_ROUTES or not check.is_name(queue) or type(path) ~= "string" then
      return check.problem("record.routes", ROUTES, path)
    end
  end
end

---@param blob string
---@return table? record
---@return string? problem
function M.read(blob)
  local record = check.map(blob)
  if not record then
    return nil, check.not_a_map("record", blob)
  elseif record.format ~= elsewhere.FORMAT then
    return nil, elsewhere.other_format("record")
  end
  local problem = check.unknown_field(record, FIELDS, "record")
  if not problem and not check.is_integer(record.generation, 1, elsewhere.MOST_GENERATIONS) then
    problem = check.problem("record.generation", "an integer from 1 to 10^15", record.generation)
  end
  problem = problem or check_partitions(record.partitions) or check_buckets(record.buckets, #record.partitions)
    or check_moves(record.former, record.moving, #record.partitions) or check_routes(record.routes)
    or record.moved_ms ~= nil and not check.is_integer(record.moved_ms, 0, MOST_MS)
    and check.problem("record.moved_ms", "ms since 1970", record.moved_ms) or nil
  return not problem and record or nil, problem
end

return M
