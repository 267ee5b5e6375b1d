-- Keys of constraints that a worker holds when it releases jobs.
local meta = require "jqlua.base.meta"
local fields = require "jqlua.base.fields"
local check = require "jqlua.base.check"
local constraints = require "jqlua.limits.constraints"
local msgpack = require "jqlua.base.msgpack"
local keyrecord = require "jqlua.limits.keyrecord"
local parking = require "jqlua.limits.parking"
local job_units = require "jqlua.limits.job_units"

local M = {}

local ALL = "*"
local SECONDS = { "seconds", 0, 31536000 }
local MOST = 10

--- Checks the field `hold`. Reads.
---@param hold table map from ids to seconds
---@return table holds number of the constraint -> until_ms, and ALL for all constraints of a job
function M.parse(hold)
  local holds, count = {}, 0
  for _ in pairs(hold) do
    count = count + 1
  end
  check.refuse((count == 0 or count > MOST) and "INVALID hold: expected 1 to " .. MOST .. " constraints, got " .. count)
  for id, seconds in pairs(hold) do
    check.refuse(type(id) ~= "string"
      and "INVALID hold: expected a map with text as keys, got the key " .. check.show(id))
    fields.check_value(seconds, SECONDS, "hold.", check.part(id))
    local definition = id ~= ALL and constraints.load(id)
    check.refuse(id ~= ALL and not definition and check.missing("hold." .. check.part(id), "constraint", id))
    holds[definition and definition.n or ALL] = meta.state[meta.NOW_MS] + math.ceil(seconds * 1000)
  end
  return holds
end

--- The value of a key, from the field `by` of the call's spec.
---@return string value
function M.value(definition)
  local paths, by = definition.b or {}, definition.bg
  local _, spec = msgpack.read(ARGV[1], true)
  local wanted = spec and spec.by
  check.refuse(wanted ~= nil and not by and "INVALID by: this constraint has no by")
  if type(by) ~= "table" then
    wanted = { wanted }
  elseif not check.is_list(wanted, #paths, #paths) then
    wanted = {}
  end
  local values = {}
  for i in ipairs(paths) do
    check.refuse(msgpack.scalar(wanted[i]) == nil and "INVALID by: expected "
      .. (type(by) == "table" and "a list of the values of " .. table.concat(by, ", ") or "the value of " .. by)
      .. ": nil, a boolean, a number or text")
    values[i] = constraints.shorten(msgpack.text(wanted[i]))
  end
  return constraints.join(values)
end

--- Closes a running job's keys under these constraints.
function M.close(job, holds)
  local units = job_units.of(job)
  for _, entry in ipairs(units and units[job_units.ENTRIES] or {}) do
    local until_ms = math.max(holds[entry[job_units.NUMBER]] or 0, holds[ALL] or 0)
    if until_ms > 0 then
      local key = keyrecord.load_named(entry[job_units.NAME])
      parking.hold(key, math.max(until_ms, key.hold_ms))
    end
  end
end

return M
