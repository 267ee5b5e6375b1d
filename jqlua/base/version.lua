---@lazy
-- The version of what the partitions of a system have in common. Who changes that in all of them says from which
-- version to which: so those of one version have come there by the same changes, in the same order.
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"

local M = {}

M.VERSION = "a version of settings, 0 or <number>-<hexadecimal digits>"
local NONE = "0" -- where nothing was changed in all partitions

function M.is_version(value)
  return value == NONE or type(value) == "string" and #value <= 40 and value:find("^%d+%-%x+$") ~= nil
end

--- Why a call that is made for one version alone cannot be: settings are of another.
---@param expected string the version that the caller knows
---@return string? stale
function M.stale(expected)
  local own = redis.call("GET", keys.SETTINGS_VERSION) or NONE
  return own ~= expected and "STALE " .. own or nil
end

--- Checks the field `settings` of a change. Before any write.
---@return string? problem
function M.check(spec)
  local moves = spec.settings
  if moves == nil then
    return nil
  elseif not (check.is_list(moves, 2, 2) and M.is_version(moves[1]) and M.is_version(moves[2])) then
    return check.problem("settings", "a list of two, each " .. M.VERSION, moves)
  end
  return M.stale(moves[1])
end

--- The change is made.
function M.move(spec)
  if spec.settings then
    redis.call("SET", keys.SETTINGS_VERSION, spec.settings[2])
  end
end

return M
