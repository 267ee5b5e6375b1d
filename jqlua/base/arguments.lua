-- What most scripts begin with: opens the namespace and parses the call's arguments.
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local fields = require "jqlua.base.fields"

local M = {}

local MOST_IDS = 1000

--- Opens the namespace and reads the call's only spec.
---@param known table<string, table> its fields: `HEAD`, which the build makes of the script's head
---@param takes_more? boolean whether more arguments may follow
---@return table spec
function M.spec(known, takes_more)
  meta.open()
  local spec = (#ARGV == 1 or takes_more and #ARGV > 1) and check.map(ARGV[1])
  check.refuse(not spec and check.not_one_spec(takes_more))
  fields.check(spec, known)
  return spec
end

--- Opens the namespace of a call whose arguments are job ids.
function M.ids()
  meta.open()
  check.refuse((#ARGV < 1 or #ARGV > MOST_IDS)
    and "INVALID ids: expected 1 to " .. MOST_IDS .. " job ids, got " .. #ARGV)
  for i, id in ipairs(ARGV) do
    check.refuse(not check.is_id(id) and check.problem("ids[" .. i - 1 .. "]", check.ID, id))
  end
end

return M
