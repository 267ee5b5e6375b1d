---@lazy
-- Which system the namespace is a partition of, and which jobs of others its own may depend on.
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"

local M = {}

local call = redis.call

M.FORMAT = 1 -- of the record (docs/partitions.md)
M.MOST_GENERATIONS = 1e15
M.BUCKETS = 1024
M.OVER = "over " -- + digits of a partition, among what is known of others: that it is no more

function M.other_format(where)
  return "VERSION " .. where .. ": this record of a system has another format than " .. M.FORMAT
    .. ": use scripts of its version"
end

---@return string tag of the system's name
---@return string digits of this partition
function M.own()
  local tag, number = KEYS[1]:match("^{(.*):(%d+)~%x+}$")
  return tag or KEYS[1]:sub(2, -2), string.format("%02x", number or 0)
end

---@return table? record nil where there is none, or it cannot be read
---@return string? problem
function M.record()
  local raw = call("GET", keys.SYSTEM)
  if not raw then
    return nil
  end
  local ok, record = pcall(cmsgpack.unpack, raw)
  if ok and type(record) == "table" and record.format == M.FORMAT and type(record.partitions) == "table" then
    return record
  end
  return nil, M.other_format(keys.SYSTEM)
end

--- How many partitions the system has.
---@return number count 0 where the namespace is in none
---@return string? problem
function M.count()
  local record, problem = M.record()
  return record and #record.partitions or 0, problem
end

--- Whether a partition takes no letters any more.
---@param digits string of the partition
---@return string? state closed (its jobs had all ended) or lost; nil where it takes some
function M.over(digits)
  return call("HGET", keys.ELSEWHERE, M.OVER .. digits) or nil
end

---@param generation any
---@param path? string as errors name it
---@return string? problem
function M.generation_problem(generation, path)
  if generation ~= nil and not check.is_integer(generation, 0, M.MOST_GENERATIONS) then
    return check.problem(path or "generation", "an integer from 0 to 10^15", generation)
  end
end

--- Why a call was not routed as the record says that is here: by an earlier one. Before any write.
---@param generation number of the record that it was routed by
---@param is_exact? boolean whether a later one will not do either
---@return string? problem
function M.outdated(generation, is_exact)
  local own = tonumber(call("GET", keys.GENERATION) or 0)
  if generation < own or is_exact and generation > own then
    return string.format("ROUTE generation: this is generation %d of the system, the call was routed by %d", own,
      generation)
  end
end

---@param value string
---@return number bucket 0 to 1023
function M.bucket_of(value)
  return tonumber(redis.sha1hex(value):sub(1, 4), 16) % M.BUCKETS
end

--- Whether the bucket of a value went from here to another partition.
function M.has_left(value)
  return call("GETBIT", keys.LEFT, M.bucket_of(value)) == 1
end

--- Takes note of what a new record says: which buckets went, and which came back; which partitions are no more.
---@param record table
function M.note(record)
  local _, digits = M.own()
  local own = tonumber(digits, 16)
  for bucket, number in pairs(record.former or {}) do
    if number == own then
      call("SETBIT", keys.LEFT, bucket, 1)
    end
  end
  for i, number in ipairs(call("EXISTS", keys.LEFT) == 1 and record.buckets or {}) do
    if number == own then
      call("SETBIT", keys.LEFT, i - 1, 0)
    end
  end
  for i, partition in ipairs(record.partitions) do
    local state, other = partition[2], string.format("%02x", i - 1)
    if (state == "closed" or state == "lost") and not M.over(other) then
      call("HSET", keys.ELSEWHERE, M.OVER .. other, state)
      call("ZADD", keys.OUTBOXES, "XX", 0, other) -- what it was to be told is settled now
    end
  end
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
