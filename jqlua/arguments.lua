-- What most scripts begin with: the namespace is opened, the call's arguments are taken apart.
local meta = require "jqlua.meta"
local check = require "jqlua.check"

local M = {}

local MOST_IDS = 1000

--- Opens the namespace and takes the call's one spec.
---@param known string the fields there are, separated by blanks
---@return table? spec
---@return string? problem
function M.spec(known)
  local problem = meta.open()
  if problem then
    return nil, problem
  end
  local spec = #ARGV == 1 and check.map(ARGV[1])
  if not spec then
    return nil, check.not_one_spec()
  end
  problem = check.unknown_field(spec, known)
  if problem then
    return nil, problem
  end
  return spec
end

--- Opens the namespace of a call whose arguments are job ids.
---@return string? problem
function M.ids()
  local problem = meta.open()
  if problem then
    return problem
  elseif #ARGV < 1 or #ARGV > MOST_IDS then
    return "INVALID ids: expected 1 to " .. MOST_IDS .. " job ids, got " .. #ARGV
  end
  for i, id in ipairs(ARGV) do
    if not check.is_id(id) then
      return check.problem("ids[" .. i - 1 .. "]", check.ID, id)
    end
  end
end

return M
