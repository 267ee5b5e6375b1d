-- Values that several arguments have in common, with their paths: at the top, and in maps there.
local budget = require "jqlua.job.budget"
local constraints = require "jqlua.limits.constraints"
local keys = require "jqlua.base.keys"
local msgpack = require "jqlua.base.msgpack"

local M = {}

-- Longer arguments are not read, and so many values of a map.
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
---@param depth number of maps in it that are opened, too
local function count_at(counts, value, path, depth)
  local scalar = msgpack.scalar(value)
  if scalar then
    local text = msgpack.text(value)
    if #text <= constraints.LONGEST_VALUE + 1 then
      local name = name_of(path, text)
      counts[name] = (counts[name] or 0) + 1
    end
  elseif type(value) == "table" and depth >= 0 then
    local left, is_list = MOST_VALUES, value[1] ~= nil
    for key, entry in pairs(value) do
      local text = tostring(is_list and type(key) == "number" and key - 1 or key)
      if left > 0 and #text <= constraints.LONGEST_VALUE then
        count_at(counts, entry, path .. "." .. text:gsub("[.\\]", "\\%0"), depth - 1)
      end
      left = left - 1
    end
  end
end

--- Adds the values of a job's argument.
---@param counts table
function M.count(counts, id)
  local argument = redis.call("GETRANGE", keys.ARGUMENT .. id, 0, READ)
  budget.pay(budget.LOOK)
  if #argument <= READ then
    budget.pay(budget.of_argument(argument))
    local _, value = msgpack.read(argument)
    count_at(counts, value, "argument", 1)
  end
end

--- The most frequent ones that several have; of equal times in order of path and value.
---@param most number
---@return table[] {path, value in the form that names keys, times}
function M.most(counts, most)
  local list = {}
  for name, times in pairs(counts) do
    local size = struct.unpack(">I2", name)
    list[#list + 1] = times > 1 and { name:sub(3, 2 + size), name:sub(3 + size), times, name } or nil
  end
  table.sort(list, function(a, b)
    return a[3] > b[3] or a[3] == b[3] and a[4] < b[4]
  end)
  return { unpack(list, 1, math.min(most, #list)) }
end

return M
