-- Values that several arguments have in common, with their paths: at the top, and in maps there.
local budget = require "jqlua.job.budget"
local constraints = require "jqlua.limits.constraints"
local keys = require "jqlua.base.keys"
local msgpack = require "jqlua.values.msgpack"
local tally = require "jqlua.base.tally"

local M = {}

-- So many bytes of an argument are read, and so many values of a map.
local READ = 4096
local MOST_VALUES = 20

local function name_of(path, value)
  return struct.pack(">I2", #path) .. path .. value
end

--- How often a value was counted.
---@return number
function M.times(counts, path, value)
  return counts[name_of(path, value)] or 0
end

--- Counts the values of a map or a list, or one value.
---@param pos number where it begins
---@param depth number of maps in it that are opened, too
local function count_at(counts, blob, pos, path, depth)
  local at, size, is_map = msgpack.open(blob, pos)
  if not at then
    local value = msgpack.canonical(blob, pos)
    if value and #value <= constraints.LONGEST_VALUE + 1 then
      tally.add(counts, name_of(path, value))
    end
    return
  elseif depth < 0 then
    return
  end
  for i = 0, math.min(size, MOST_VALUES) - 1 do
    local name = is_map and msgpack.canonical(blob, at) or "i" .. i
    local value_at = is_map and msgpack.skip(blob, at) or at
    at = value_at and msgpack.skip(blob, value_at)
    if not at then
      return -- the rest was not read
    end
    local text = name and name:match("^[si](.+)")
    if text and #text <= constraints.LONGEST_VALUE then
      count_at(counts, blob, value_at, path .. "." .. text:gsub("[.\\]", "\\%0"), depth - 1)
    end
  end
end

--- Adds the values of a job's argument.
---@param counts table
function M.count(counts, id)
  local argument = redis.call("GET", keys.ARGUMENT .. id) or ""
  local blob = argument:sub(1, READ)
  budget.pay(budget.LOOK + 2 * budget.of_bytes(argument))
  if #blob == READ or msgpack.is_whole(blob) then
    count_at(counts, blob, 1, "argument", 1)
  end
end

--- The most frequent ones that several have.
---@param most number
---@return table[] {path, value in the form that names keys, times}
function M.most(counts, most)
  for value, times in pairs(counts) do
    counts[value] = times > 1 and times or nil
  end
  local list = tally.most(counts, most)
  for i, pair in ipairs(list) do
    local size = struct.unpack(">I2", pair[1])
    list[i] = { pair[1]:sub(3, 2 + size), pair[1]:sub(3 + size), pair[2] }
  end
  return list
end

return M
