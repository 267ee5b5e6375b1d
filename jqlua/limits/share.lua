---@lazy
-- Shares: what a partition of a system may have of the constraints that its partitions share. A share is in force in
-- place of the constraint's limit: until a moment, and on the server that was told it. Another server may know of an
-- older share only, and what the one before had left was given to other partitions: so there nothing starts before the
-- shares are told anew (docs/partitions.md, "Limits").
--
-- What is the same for all shares of a partition stands in one record, a list of the fields below.
local batch = require "jqlua.base.writes"
local keys = require "jqlua.base.keys"
local memory = require "jqlua.base.memory"
local meta = require "jqlua.base.meta"
local server = require "jqlua.base.server"

local M = {}

local call = redis.call

M.MOST = 100 -- shared constraints of a namespace: all of them are told in one call

-- Fields of the record.
M.EPOCH = 1 -- who told the shares last: later balancers have greater epochs
M.TURN = 2 -- and in which of its turns
M.UNTIL_MS = 3
M.MOVED = 4 -- another server was told shares, and this one none yet
M.RUN_ID = 5 -- of the server
local AT_FUNCTIONS = 6 -- where its Lua of functions lives, once one asked (module base.server)
local AT_SCRIPTS = 7

M.CLOSED = -1 -- in place of a number of jobs that may run at once: nothing starts

-- Of one constraint, behind its limits (module limits.limitrecord).
M.CONCURRENCY = 1
M.RATE = 2
M.OF_CONCURRENCY = 3 -- of how many, in all partitions together; 0: no limit
M.OF_RATE = 4
local FORMAT = ">I4I4"

M.record = {} -- the first: the record, once it was read

---@return table
function M.load()
  local own = M.record[1]
  if not own then
    local raw = call("GET", keys.SHARES)
    own = raw and cmsgpack.unpack(raw) or { "", 0, 0, false, "", "", "" }
    M.record[1] = own
  end
  return own
end

--- Has the record written at the next flush; who only reads has none.
function M.save()
  local writes = batch.writes
  local n = #writes
  writes[n + 1], writes[n + 2] = keys.SHARES, cmsgpack.pack(M.record[1])
end

--- Whether this is the server that was told the shares. To ask for its run_id costs much, so where its Lua lives is
--- noted: once for the functions, once for the scripts.
local function is_here(own)
  local at = memory.LASTS and AT_FUNCTIONS or AT_SCRIPTS
  if own[at] == server.address() then
    return true
  elseif own[M.RUN_ID] ~= server.run_id() then
    return false
  end
  own[at] = server.address()
  M.save()
  return true
end

--- Whether shares are in force at all.
---@return boolean
function M.are_valid()
  local own = M.load()
  return meta.state[meta.NOW_MS] < own[M.UNTIL_MS] and is_here(own)
end

--- The limits in force.
---@param share table of one constraint
---@return number concurrency
---@return number rate
function M.in_force(share)
  local concurrency, rate = share[M.CONCURRENCY], share[M.RATE]
  if share[M.OF_CONCURRENCY] > 0 and concurrency == 0 or share[M.OF_RATE] > 0 and rate == 0 or not M.are_valid() then
    return M.CLOSED, share[M.OF_RATE]
  end
  return concurrency, rate
end

--- Shares are told: on this server, until that moment.
function M.renew(until_ms)
  local own = M.load()
  own[M.UNTIL_MS], own[M.MOVED] = until_ms, false
  M.save()
end

---@param at number where it stands
---@return table share
function M.decode(raw, at, concurrency, rate)
  local own_concurrency, own_rate = struct.unpack(FORMAT, raw, at)
  return { own_concurrency, own_rate, concurrency, rate }
end

---@return string bytes
function M.encode(share)
  return struct.pack(FORMAT, share[M.CONCURRENCY], share[M.RATE])
end

--- A balancer comes, with shares or to look. Nothing is written if it is told that it may not.
---@param has_shares boolean
---@return string? problem
function M.meet(epoch, turn, has_shares)
  local run_id, own = server.run_id(), M.load()
  if not run_id then
    return "INVALID user: it may not call INFO, by which a partition knows whether it is on the server that was told "
      .. "its shares"
  end
  local is_other = own[M.RUN_ID] ~= run_id
  if epoch < own[M.EPOCH] or epoch == own[M.EPOCH] and turn < own[M.TURN] then
    return "CONFLICT epoch: a later one was here: " .. own[M.EPOCH] .. ", turn " .. string.format("%d", own[M.TURN])
  elseif has_shares and (is_other or epoch ~= own[M.EPOCH]) then
    return "CONFLICT epoch: who tells shares has to have looked on this server before"
  end
  if is_other then
    own[M.MOVED] = own[M.MOVED] or own[M.RUN_ID] ~= ""
    own[M.UNTIL_MS], own[M.RUN_ID], own[AT_FUNCTIONS], own[AT_SCRIPTS] = 0, run_id, "", ""
  end
  own[M.EPOCH], own[M.TURN] = epoch, turn
  M.save()
end

return M
