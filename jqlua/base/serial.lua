-- Serial numbers, of which ids are made: each is issued once in the life of a namespace. There are 1024 to the
-- millisecond, and they never decrease. A partition of a cluster (module base.partition) appends its own number in two
-- more digits, so that no two partitions issue the same id.
local batch = require "jqlua.base.batch"
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local partition = require "jqlua.base.partition"

local M = {}

M.DIGITS = 14 -- of the number alone

--- Refuses the call for an id that was never issued here: no job can wait for it. Must precede any write.
---@param last string the last id issued, or "" before the first
function M.check_id(path, id, last)
  local is_foreign = id:sub(M.DIGITS + 1) ~= last:sub(M.DIGITS + 1)
  check.refuse(is_foreign and partition.of(KEYS[1]) > 1
    and "INVALID " .. path .. ": in another partition; give both the same route")
  check.refuse((is_foreign or id > last) and check.missing(path, "job", id))
end

-- What was last read or written: text, its number, the format of ids, and, if it was read, what stands behind the last
-- id (module statistics.statlog).
local known = { "", 0, "", "" }

--- Reads the number issued last.
local function open()
  local raw = redis.call("GET", keys.SEQ)
  if raw ~= known[1] then
    local id, rest = string.match(raw or "0", "^(%x+)(.*)$")
    known[1], known[2], known[3] = raw, tonumber(id:sub(1, M.DIGITS), 16), "%014x" .. id:sub(M.DIGITS + 1)
    known[4] = rest
  end
  -- By the microsecond: two servers of which each takes itself for the primary hardly issue the same.
  local last, micros = known[2], meta.state[meta.MICROS] % 1000
  local now = meta.state[meta.NOW_MS] * 1024 + micros - 1
  meta.state[meta.SERIAL] = last < now and now or last
end

--- Issues the next number; transition.commit writes which was the last.
---@return string digits as of an id
function M.next()
  local state = meta.state
  if not state[meta.SERIAL] then
    open()
  end
  local number = state[meta.SERIAL] + 1
  local digits = string.format(known[3], number)
  state[meta.SERIAL], state[meta.ISSUED] = number, digits
  return digits
end

--- Buffers the last number that this call issued.
---@param follow fun(id: string, before?: string): string puts something behind it, as it may have done before
function M.save(follow)
  local state = meta.state
  local raw = follow(state[meta.ISSUED], known[4])
  known[1], known[2], known[4] = raw, state[meta.SERIAL], nil
  state[meta.ISSUED] = false
  batch.write(keys.SEQ, raw)
end

--- The last id, or "" before the first, and what stands behind it.
---@return string id
---@return string rest
function M.read()
  return string.match(redis.call("GET", keys.SEQ) or "", "^(%x*)(.*)$")
end

--- Takes what stands behind the last id away.
function M.cut()
  local id, rest = M.read()
  if rest ~= "" then
    redis.call("SET", keys.SEQ, id)
    known[1], known[4] = "", "" -- this call may issue more
  end
end

return M
