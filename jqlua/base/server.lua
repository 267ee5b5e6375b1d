-- Which server this is. The last ids issued may be lost in a failover; the new server must not issue them again, even
-- if its clock is behind or the old one still runs.
local keys = require "jqlua.base.keys"

local M = {}

local known = { false }

--- The address of the server's Lua state: it differs from process to process and costs nothing. run_id would do as
--- well, but reading it costs a fifth of starting a job, and not every user may.
---@return string address
function M.address()
  if not LASTS then
    return tostring(redis.call)
  end
  known[1] = known[1] or tostring(redis.call)
  return known[1]
end

--- Functions and scripts run in separate Lua states, so each has its own key.
---@return string key of the address at which ids were given last
function M.key()
  return LASTS and keys.AT_FUNCTIONS or keys.AT_SCRIPTS
end

---@return string? run_id nil if the user may not read it
function M.run_id()
  local info = redis.pcall("INFO", "server")
  return type(info) == "string" and info:match("run_id:(%x+)") or nil
end

--- Records this server as the one that issues ids.
---@return boolean whether it took over from another, as far as is known
function M.take_over()
  local run_id = M.run_id()
  local before = redis.call("GET", keys.SERVER)
  local is_known = before and before == run_id -- only its Lua state is new, or it is the other form of calls
  if run_id and not is_known then -- a user without the right must not make the other form of calls ask again and again
    redis.call("DEL", keys.AT_FUNCTIONS, keys.AT_SCRIPTS)
  end
  redis.call("MSET", keys.SERVER, run_id or before or "unknown", M.key(), M.address())
  return before and not is_known
end

return M
