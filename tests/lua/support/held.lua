-- What is refused alike by the scripts that take {worker, jobs: [[id, token], ...]}.
local space = require "support.space"
local specs = require "support.specs"

local M = {}

local ID = space.UNKNOWN_ID
local TOKEN = "1-0123456789ab"
local NAME = "text of 1 to 255 bytes, valid UTF-8, no control characters"

---@param least number of jobs
---@param more? table further fields of a valid spec
function M.refused(it, jq, script, least, more)
  local function with(field)
    return function(value)
      local spec = { worker = "w", jobs = { { ID, TOKEN } } }
      for name, other in pairs(more or {}) do
        spec[name] = other
      end
      if field then
        spec[field] = value
      end
      return { spec }
    end
  end
  local jobs = "INVALID jobs: expected a list of " .. least .. " to 1000 pairs [id, token], got "
  local pair = "INVALID jobs[1]: expected a pair [id, token], got "
  local id = "INVALID jobs[0][0]: expected a job id of 14 hexadecimal digits, got "
  local token = "INVALID jobs[0][1]: expected the token that came with the job, <attempt>-<digits>, got "
  local many = {}
  for i = 1, 1001 do
    many[i] = { ID, TOKEN }
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
    { "a map as jobs", { a = { ID, TOKEN } }, jobs .. "a map" },
    { "an id alone", { { ID, TOKEN }, ID }, pair .. '"' .. ID .. '"' },
    { "a list of one", { { ID, TOKEN }, { ID } }, pair .. "a list" },
    { "a list of four", { { ID, TOKEN }, { ID, TOKEN, {}, 1 } }, pair .. "a list" },
    { "an id of 13 digits", { { ID:sub(2), TOKEN } }, id .. '"' .. ID:sub(2) .. '"' },
    { "an id in upper case", { { "0000000000ABCD", TOKEN } }, id .. '"0000000000ABCD"' },
    { "a number as id", { { 5, TOKEN } }, id .. "5" },
    { "an attempt alone", { { ID, 1 } }, token .. "1" },
    { "attempt 0", { { ID, "0-" } }, token .. '"0-"' },
    { "digits alone", { { ID, "0123456789ab" } }, token .. '"0123456789ab"' },
    { "a token in upper case", { { ID, "1-ABC" } }, token .. '"1-ABC"' },
  })
  if least > 0 then
    specs.refused_values(it, jq, script, with("jobs"), {
      { "no jobs", {}, jobs .. "an empty list or map" },
    })
  end
  specs.one_spec(it, jq, script, with()()[1])
end

return M
