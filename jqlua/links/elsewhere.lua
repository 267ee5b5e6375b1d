---@lazy
-- Which system the namespace is a partition of, and which jobs of others its own may depend on.
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"

local M = {}

local call = redis.call

local FORMAT = 1 -- of the record (docs/partitions.md)

---@return string tag of the system's name
---@return string digits of this partition
function M.own()
  local tag, number = KEYS[1]:match("^{(.*):(%d+)~%x+}$")
  return tag or KEYS[1]:sub(2, -2), string.format("%02x", number or 0)
end

--- How many partitions the system has.
---@return number count 0 where the namespace is in none
---@return string? problem
function M.count()
  local raw = call("GET", keys.SYSTEM)
  if not raw then
    return 0
  end
  local ok, record = pcall(cmsgpack.unpack, raw)
  if ok and type(record) == "table" and record.format == FORMAT and type(record.partitions) == "table" then
    return #record.partitions
  end
  return 0, "VERSION the record of the system in " .. keys.SYSTEM .. " has another format than " .. FORMAT
    .. ": use scripts of its version"
end

--- Why no job can wait for one of this id: it was never given here, and no other partition can have given it.
---@param last string the last id that was given, or "" before the first
---@return string? problem
function M.never_given(path, id, last)
  if id:sub(15) == last:sub(15) then
    return id > last and check.missing(path, "job", id) or nil
  end
  local count, problem = M.count()
  if problem then
    return problem
  elseif count == 0 then
    return "INVALID " .. path .. ": job " .. id .. " is of another partition than the one that waits for it"
  end
  local number = #id == 14 and 0 or tonumber(id:sub(15), 16)
  if number >= count then
    return check.missing(path, "job", id) .. ", the system has no partition " .. number
  end
end

return M
