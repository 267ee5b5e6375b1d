-- Serial numbers, of which ids are made: each is issued once in the life of a namespace. There are 1024 to the
-- millisecond, and they never decrease. A partition of a cluster (module base.partition) appends its own number in two
-- more digits, so that no two partitions issue the same id.
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local partition = require "jqlua.base.partition"
local server = require "jqlua.base.server"

local M = {}

local call = redis.call

M.DIGITS = 14 -- of the number alone
-- After a failover the new server skips this many numbers, plus a random count up to as many again: 65 to 131 seconds'
-- worth. They cover what the old server issued and this one does not know of, unless this one's clock is further behind
-- or the old one goes on for longer.
local LEFT_OUT = 2 ^ 26

local function after_failover(last)
  local digest = redis.sha1hex(meta.random() .. last .. server.address())
  return last + LEFT_OUT + tonumber(digest:sub(1, 8), 16) % LEFT_OUT
end

--- Refuses the call for an id that was never issued here: no job can wait for it. Must precede any write.
---@param last string the last id issued, or "" before the first
function M.check_id(path, id, last)
  local is_foreign = id:sub(M.DIGITS + 1) ~= last:sub(M.DIGITS + 1)
  check.refuse(is_foreign and partition.of(KEYS[1]) > 1
    and "INVALID " .. path .. ": in another partition; give both the same route")
  check.refuse((is_foreign or id > last) and check.missing(path, "job", id))
end

-- Of ids [1]: their format.
local sequence = { "" }

--- Notes what a call that issues numbers read already.
---@param raw string|false as of keys.SEQ
---@param note string|false as of server.key()
function M.open(raw, note)
  local format = "%014x"
  if raw and #raw > M.DIGITS then
    raw, format = raw:sub(1, M.DIGITS), format .. raw:sub(M.DIGITS + 1)
  end
  local last, now = tonumber(raw or "0", 16), meta.state[meta.NOW_MS] * 1024 - 1
  if last < now then
    last = now
  end
  if note ~= server.address() and server.take_over() then
    last = after_failover(last)
    call("SET", keys.SEQ, string.format(format, last))
  end
  meta.state[meta.SERIAL], sequence[1] = last, format
end

--- Issues the next number; transition.commit writes which was the last.
---@return string digits as of an id
function M.next()
  local state = meta.state
  if not state[meta.SERIAL] then
    M.open(unpack(call("MGET", keys.SEQ, server.key())))
  end
  local number = state[meta.SERIAL] + 1
  local digits = string.format(sequence[1], number)
  state[meta.SERIAL], state[meta.ISSUED] = number, digits
  return digits
end

return M
