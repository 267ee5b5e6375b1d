-- What is refused alike by the scripts that take {worker, jobs: [[id, attempt], ...]}.
local space = require "support.space"
local specs = require "support.specs"

local M = {}

local ID = space.UNKNOWN_ID
local NAME = "text of 1 to 255 bytes, valid UTF-8, no control characters"

---@param least number of jobs
---@param more? table further fields of a valid spec
function M.refused(it, jq, script, least, more)
  local function with(field)
    return function(value)
      local spec = { worker = "w", jobs = { { ID, 1 } } }
      for name, other in pairs(more or {}) do
        spec[name] = other
      end
      if field then
        spec[field] = value
      end
      return { spec }
    end
  end
  local jobs = "INVALID jobs: expected a list of " .. least .. " to 1000 pairs [id, attempt], got "
  local pair = "INVALID jobs[1]: expected a pair [id, attempt], got "
  local id = "INVALID jobs[0][0]: expected a job id of 14 hexadecimal digits, got "
  local attempt = "INVALID jobs[0][1]: expected an attempt, an integer from 1, got "
  local many = {}
  for i = 1, 1001 do
    many[i] = { ID, 1 }
  end
  specs.refused_values(it, jq, script, with("worker"), {
    { "a missing worker", nil, "INVALID worker: expected " .. NAME .. ", got nothing" },
    { "an empty worker", "", "INVALID worker: expected " .. NAME .. ', got ""' },
    { "a list as worker", { "w" }, "INVALID worker: expected " .. NAME .. ", got a list" },
  })
  specs.refused_values(it, jq, script, with("jobs"), {
    { "missing jobs", nil, jobs .. "nothing" },
    { "text as jobs", "a", jobs .. '"a"' },
    { "1001 jobs", many, jobs .. "a list" },
    { "a map as jobs", { a = { ID, 1 } }, jobs .. "a map" },
    { "an id alone", { { ID, 1 }, ID }, pair .. '"' .. ID .. '"' },
    { "a list of one", { { ID, 1 }, { ID } }, pair .. "a list" },
    { "a list of four", { { ID, 1 }, { ID, 1, {}, 1 } }, pair .. "a list" },
    { "an id of 13 digits", { { ID:sub(2), 1 } }, id .. '"' .. ID:sub(2) .. '"' },
    { "an id in upper case", { { "0000000000ABCD", 1 } }, id .. '"0000000000ABCD"' },
    { "a number as id", { { 5, 1 } }, id .. "5" },
    { "attempt 0", { { ID, 0 } }, attempt .. "0" },
    { "attempt 1.5", { { ID, 1.5 } }, attempt .. "1.5" },
    { "text as attempt", { { ID, "1" } }, attempt .. '"1"' },
    { "an attempt beyond 32 bits", { { ID, 4294967296 } }, attempt .. "4294967296" },
  })
  if least > 0 then
    specs.refused_values(it, jq, script, with("jobs"), {
      { "no jobs", {}, jobs .. "an empty list or map" },
    })
  end
  specs.one_spec(it, jq, script, with()()[1])
end

return M
