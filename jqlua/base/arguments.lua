-- What most scripts begin with: opens the namespace and parses the call's arguments.
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"

local M = {}

local MOST_IDS = 1000

--- Opens the namespace and reads the call's only spec.
---@param known string known fields, separated by blanks
---@param takes_more? boolean whether more arguments may follow
---@return table spec
function M.spec(known, takes_more)
  meta.open()
  local spec = (#ARGV == 1 or takes_more and #ARGV > 1) and check.map(ARGV[1])
  check.refuse(not spec and check.not_one_spec(takes_more) or check.unknown_field(spec, known))
  return spec
end

--- Checks the field `actor`: who makes a change, in specs of operators.
---@return string? problem
function M.check_actor(spec)
  if spec.actor ~= nil and not check.is_short_name(spec.actor) then
    return check.problem("actor", check.SHORT_NAME, spec.actor)
  end
end

--- Like spec, for an operation that may name its caller.
---@param known string
---@return table spec
function M.operators(known)
  local spec = M.spec(known .. " actor")
  check.refuse(M.check_actor(spec))
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

--- Checks an optional field that must be one of some words.
---@param words string separated by blanks
---@return string? problem
function M.check_choice(field, value, words)
  if value ~= nil and (type(value) ~= "string" or value == "" or value:find(" ", 1, true)
    or not (" " .. words .. " "):find(" " .. value .. " ", 1, true)) then
    return check.problem(field, "one of " .. words:gsub(" ", ", "), value)
  end
end

--- Checks a field `ids`.
---@return string? problem
function M.check_ids(ids)
  if not check.is_list(ids, 1, MOST_IDS) then
    return check.problem("ids", "a list of 1 to " .. MOST_IDS .. " job ids", ids)
  end
  for i, id in ipairs(ids) do
    if not check.is_id(id) then
      return check.problem("ids[" .. i - 1 .. "]", check.ID, id)
    end
  end
end

return M
