-- Lists of [id, token] by which workers name the jobs they hold.
local check = require "jqlua.base.check"

local M = {}

--- Checks the field `jobs`: refuses the call if it is wrong.
---@param least number
---@param most? number 3: each may have notes behind it
function M.check(jobs, least, most)
  check.refuse(not check.is_list(jobs, least, 1000)
    and check.problem("jobs", "a list of " .. least .. " to 1000 pairs [id, token]", jobs))
  for i, pair in ipairs(jobs) do
    local path = "jobs[" .. i - 1 .. "]"
    if not check.is_list(pair, 2, most or 2) then
      check.refuse(check.problem(path, most and "[id, token] or [id, token, notes]" or "[id, token]", pair))
    elseif not check.is_id(pair[1]) then
      check.refuse(check.problem(path .. "[0]", check.ID, pair[1]))
    elseif not check.is_token(pair[2]) then
      check.refuse(check.problem(path .. "[1]", check.TOKEN, pair[2]))
    end
  end
end

return M
