-- Numbers that are given once in the life of a namespace: those that ids are made of. They are 1024 to the millisecond,
-- but never behind the last. A partition of a cluster (module base.partition) has its own number behind each, in two
-- digits more, so that no two give the same id.
local batch = require "jqlua.base.batch"
local check = require "jqlua.base.check"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local partition = require "jqlua.base.partition"
local server = require "jqlua.base.server"

local M = {}

local call = redis.call

M.DIGITS = 14 -- of the number alone
-- A server that takes over leaves out so many, and up to as many again by chance: 65 to 131 seconds of them. What the
-- one before gave and this one does not know of is among these, as long as this one's clock is not further behind and
-- the other does not go on for longer.
local LEFT_OUT = 2 ^ 26

---@cold
local function after_another(last)
  local digest = redis.sha1hex(meta.random() .. last .. server.address())
  return last + LEFT_OUT + tonumber(digest:sub(1, 8), 16) % LEFT_OUT
end

---@param raw string|false as of keys.SEQ
---@param note string|false as of server.key()
---@return number last given, or what counts as such by now. The next are written by who takes them
---@return string format of an id
function M.last(raw, note)
  local format = "%014x"
  if raw and #raw > M.DIGITS then
    raw, format = raw:sub(1, M.DIGITS), format .. raw:sub(M.DIGITS + 1)
  end
  local last = math.max(tonumber(raw or "0", 16), meta.state[meta.NOW_MS] * 1024 - 1)
  if note ~= server.address() and server.take_over() then
    last = after_another(last)
    call("SET", keys.SEQ, string.format(format, last))
  end
  return last, format
end

---@cold
--- Why no job can wait for one of this id: it was never given here. Before any write.
---@param last string the last id that was given, or "" before the first
---@return string? problem
function M.never_given(path, id, last)
  local is_foreign = id:sub(M.DIGITS + 1) ~= last:sub(M.DIGITS + 1)
  if is_foreign and partition.of(KEYS[1]) > 1 then
    return "INVALID " .. path .. ": in another partition; give both the same route"
  elseif is_foreign or id > last then
    return check.missing(path, "job", id)
  end
end

---@rare
M.sequence = {} -- [1]: the last number given by this call, [2]: the format of ids

---@cold
--- Takes the next number, and has that written with the call's writes.
---@return string digits as of an id
function M.next()
  local sequence = M.sequence
  if not sequence[1] then
    sequence[1], sequence[2] = M.last(unpack(call("MGET", keys.SEQ, server.key())))
  end
  sequence[1] = sequence[1] + 1
  local number = string.format(sequence[2], sequence[1])
  local writes = batch.writes
  local n = #writes
  writes[n + 1], writes[n + 2] = keys.SEQ, number
  return number
end

return M
