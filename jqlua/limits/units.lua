---@lazy
-- The section of a job's record that says in which lane it waits and which room it has taken.
--
-- Jobs that wait under the same keys of constraints, in the same groups of a fair queue, are held or free
-- together: they form a lane. A job needs a unit of each of its keys to start, and has it as long as it runs.
--
-- In a script, units are a list of the fields below.
local keys = require "jqlua.base.keys"
local job = require "jqlua.job.record"

local M = {}

M.LANE = 1 -- digest of what the lane is; of no meaning unless the job waits in it
M.PATH = 2 -- digests of the fair queue's groups it is in, outermost first, one behind the other
M.GROUPS = 3 -- list of the values that made these groups
M.ENTRIES = 4 -- list of {number, flags, cost, value, name}, by number

-- Fields of an entry.
M.NUMBER = 1 -- of the constraint
M.FLAGS = 2
M.COST = 3
M.VALUE = 4
M.NAME = 5 -- number .. ":" .. value, which names the key

-- Flags.
M.TAKEN = 1 -- the job has its unit
M.STRICT = 2 -- it keeps it until it ends for good

M.DIGEST = 20 -- size of one

--- How a key is called inside of names of Redis keys.
---@param number number
---@param value string
function M.key_name(number, value)
  return string.format("%d:", number) .. value
end

---@return table? units nil when the job has none
function M.of(of)
  local section = of[job.UNITS]
  if section == "" then
    return nil
  end
  local lane, count, at = struct.unpack(">c20B", section)
  local groups = {}
  for i = 1, count do
    groups[i], at = struct.unpack(">I2c0", section, at)
  end
  local path = section:sub(at, at + count * M.DIGEST - 1)
  at = at + count * M.DIGEST
  local entries = {}
  while at <= #section do
    local number, flags, cost, value
    number, flags, cost, value, at = struct.unpack(">I4BdI2c0", section, at)
    entries[#entries + 1] = { number, flags, cost, value, M.key_name(number, value) }
  end
  return { lane, path, groups, entries }
end

---@return string section
function M.encode(units)
  local parts = { units[M.LANE], string.char(#units[M.GROUPS]) }
  for _, value in ipairs(units[M.GROUPS]) do
    parts[#parts + 1] = struct.pack(">I2c0", #value, value)
  end
  parts[#parts + 1] = units[M.PATH]
  for _, entry in ipairs(units[M.ENTRIES]) do
    parts[#parts + 1] = struct.pack(">I4BdI2c0", entry[M.NUMBER], entry[M.FLAGS], entry[M.COST], #entry[M.VALUE],
      entry[M.VALUE])
  end
  return table.concat(parts)
end

--- Puts units, or none, into the job; the caller has the record written.
---@param units table?
function M.put(of, units)
  if not units or (not units[M.ENTRIES][1] and not units[M.GROUPS][1]) then
    of[job.UNITS] = ""
    job.clear(of, job.LANED)
  else
    of[job.UNITS] = M.encode(units)
    job.set(of, job.LANED)
  end
end

---@return boolean
function M.is_taken(entry)
  return entry[M.FLAGS] % 2 == M.TAKEN
end

--- Names the lane: the queue, the groups, and the keys, apart by whether their units are still to be taken.
function M.name_lane(units, queue_name)
  local parts = { queue_name, units[M.PATH] }
  for _, entry in ipairs(units[M.ENTRIES]) do
    parts[#parts + 1] = (M.is_taken(entry) and "!" or "-") .. #entry[M.NAME] .. ":" .. entry[M.NAME]
  end
  units[M.LANE] = redis.sha1hex(table.concat(parts, "\0")):sub(1, M.DIGEST)
end

--- The index of the lanes that a key holds.
---@param place string a queue's name, behind "-", or "!" for those whose jobs have their unit of the key
function M.parked(name, place)
  return keys.PARKED .. #name .. ":" .. name .. place
end

return M
