---@lazy
-- Which partition of a system alone may have a job: where its queue's route leads, else where the bucket of its unique
-- key is (docs/partitions.md).
local elsewhere = require "jqlua.links.elsewhere"
local job = require "jqlua.job.record"
local keys = require "jqlua.base.keys"
local path = require "jqlua.values.path"

local M = {}

local QUEUE = "queue" -- the route that keeps all jobs of a queue together

--- The value that a route leads to: a text, or an integer in its digits; empty for all else.
local function value_of(route, of)
  if route == QUEUE then
    return of[job.QUEUE]
  end
  local compiled = path.parse(route, "route", true)
  local _, value = path.look(compiled, { argument = redis.call("GET", keys.ARGUMENT .. of[job.ID]) or "" })
  if type(value) == "number" and value % 1 == 0 then
    return string.format("%.0f", value)
  elseif type(value) == "string" and value:find("^[si]") then
    return value:sub(2)
  end
  return ""
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
    return elsewhere.has_left(value_of(route, of))
  end
  local options = job.options(of)
  return options.unique ~= nil and not options.unique_within and elsewhere.has_left(options.unique)
end

return M
