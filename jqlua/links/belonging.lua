---@lazy
-- Which partition of a system alone may have a job: where its queue's route leads, else where the bucket of its unique
-- key is (docs/partitions.md).
local elsewhere = require "jqlua.links.elsewhere"
local job = require "jqlua.job.record"
local keys = require "jqlua.base.keys"
local path = require "jqlua.values.path"

local M = {}

local QUEUE = "queue" -- the route that keeps all jobs of a queue together

-- What a call has read: [1] the system's record, false without one that can be read; [2] why it cannot.
local known = {}

local function record_here()
  if known[1] == nil then
    known[1], known[2] = elsewhere.record()
    known[1] = known[1] or false
  end
  return known[1]
end

--- Why nobody here can tell where jobs belong.
---@return string? problem
function M.problem()
  record_here()
  return known[2]
end

--- The value that a route leads to: a text, or an integer in its digits; empty for all else.
local function value_of(route, of, argument)
  if route == QUEUE then
    return of[job.QUEUE]
  end
  local compiled = path.parse(route, "route", true)
  local _, value = path.look(compiled, { argument = argument })
  if type(value) == "number" and value % 1 == 0 then
    return string.format("%.0f", value)
  elseif type(value) == "string" and value:find("^[si]") then
    return value:sub(2)
  end
  return ""
end

local function digits_of(number)
  return number and string.format("%02x", number)
end

--- Where a new job belongs, by the record that is here.
---@return table? ways {owner: digits of the partition that has its bucket, former: of the one that had it, and may have
---  its key, waits: whether the bucket is about to move}; nil where it belongs to none
function M.ways(new, argument)
  local record, unique = record_here(), job.options(new).unique
  local route = record and record.routes and record.routes[new[job.QUEUE]]
  if not record or not route and not unique then
    return nil
  end
  local bucket = elsewhere.bucket_of(route and value_of(route, new, argument) or unique)
  local ways = {
    owner = digits_of(record.buckets[bucket + 1]), former = unique and digits_of((record.former or {})[bucket]),
    waits = false,
  }
  for _, moving in ipairs(route and record.moving or {}) do
    ways.waits = ways.waits or moving == bucket
  end
  return ways.owner and ways or nil
end

---@return number generation of the record that is here, 0 without one
function M.generation()
  local record = record_here()
  return record and record.generation or 0
end

--- Whether a job that has ended belongs elsewhere by now: others of its key, or of its value, are there.
---@param of table job
---@return boolean
function M.has_left(of)
  if redis.call("EXISTS", keys.LEFT) == 0 then
    return false
  end
  local record = elsewhere.record()
  local route = record and record.routes and record.routes[of[job.QUEUE]]
  if route then
    return elsewhere.has_left(value_of(route, of, redis.call("GET", keys.ARGUMENT .. of[job.ID]) or ""))
  end
  local options = job.options(of)
  return options.unique ~= nil and not options.unique_within and elsewhere.has_left(options.unique)
end

return M
