-- Units: the section of a job's record that says in which lane it waits, or which keys' units it has while it runs.
--
-- Jobs that wait under the same keys of constraints, in the same group of a fair queue, are held or free
-- together: they form a lane. A job takes a unit of each of its keys when it starts, and has it as long as it runs.
--
-- In a script, units are a list of the fields below. Decoded sections are cached, so units and their entries are never
-- modified: new units are made from them.
local jobs = require "jqlua.job.jobs"
local memory = require "jqlua.base.memory"

local M = {}

M.LANE = 1 -- digest of the lane; only valid while the job waits in it
M.GROUP = 2 -- digest of its group in a fair queue, or ""
M.GROUP_VALUE = 3 -- the value that its group has in common
M.ENTRIES = 4 -- by number
M.BYTES = 5 -- the section

-- Fields of an entry.
M.NUMBER = 1 -- of the constraint
M.VALUE = 2
M.NAME = 3 -- number .. ":" .. value, which names the key
M.DIGITS = 4 -- the number as text
local PACKED = 5

local ENTRY = ">I4I2c0"
local LANE_AND_GROUP = ">c20I2c0"

M.DIGEST = 20 -- size of one

-- Units by their section; or, with a zero byte in front, by queue and section without the lane.
local known = KEPT

--- The number and the value of a key's name.
---@param name string
---@return number
---@return string
function M.split_name(name)
  local digits = name:match("^%d+")
  return tonumber(digits), name:sub(#digits + 2)
end

local function entry_of(number, value, packed)
  local digits = string.format("%d", number)
  return { number, value, digits .. ":" .. value, digits, packed }
end

--- A unit that a job needs.
---@return table entry
function M.entry(number, value)
  return entry_of(number, value, struct.pack(ENTRY, number, #value, value))
end

--- Decodes a section.
local function decode(section)
  local lane, group_value, at = struct.unpack(LANE_AND_GROUP, section)
  local group, entries = "", {}
  if group_value ~= "" then
    group, at = struct.unpack("c20", section, at)
  end
  while at <= #section do
    local number, value, after = struct.unpack(ENTRY, section, at)
    entries[#entries + 1] = entry_of(number, value, section:sub(at, after - 1))
    at = after
  end
  return memory.keep(known, section, { lane, group, group_value, entries, section })
end

---@param section string not empty
---@return table units
function M.parse(section)
  return known[section] or decode(section)
end

---@return table? units nil if the job has none
function M.of(job)
  local section = job[jobs.UNITS]
  return section ~= "" and M.parse(section) or nil
end

--- A section without its lane.
local function encode_need(group, group_value, entries)
  local bytes = struct.pack(">I2c0", #group_value, group_value) .. group
  for _, entry in ipairs(entries) do
    bytes = bytes .. entry[PACKED]
  end
  return bytes
end

--- The digest of a lane: queue, group and keys.
local function lane_of(queue_name, group, entries)
  local parts = { queue_name, group }
  for _, entry in ipairs(entries) do
    parts[#parts + 1] = #entry[M.NAME] .. ":" .. entry[M.NAME]
  end
  return redis.sha1hex(table.concat(parts, "\0")):sub(1, M.DIGEST)
end

--- The units of a job that is to wait in a queue.
---@param group string
---@param group_value string
---@param entries table[]
---@return table units
function M.of_need(queue_name, group, group_value, entries)
  local need = encode_need(group, group_value, entries)
  local name = "\0" .. queue_name .. "\0" .. need
  local units = known[name]
  if not units then
    local section = lane_of(queue_name, group, entries) .. need
    units = memory.keep(known, name, M.parse(section))
  end
  return units
end

--- Whether a job with these units waits in a lane.
function M.is_laned(units)
  return units ~= nil and (units[M.ENTRIES][1] ~= nil or units[M.GROUP] ~= "")
end

--- Sets or removes a job's units; the caller saves the record.
---@param units table?
function M.put(job, units)
  if M.is_laned(units) then
    jobs.put_units(job, units[M.BYTES])
    jobs.set(job, jobs.LANED)
  else
    jobs.put_units(job, "")
    jobs.clear(job, jobs.LANED)
  end
end

return M
