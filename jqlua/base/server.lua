-- Which server this is. What one gave out last may be lost in a failover; the next must not give it out again, be its
-- clock behind or the old one still there.
local keys = require "jqlua.base.keys"
local memory = require "jqlua.base.memory"

local M = {}

---@kept
local known = { false }

--- Where the server's Lua lives: it differs from process to process, and is at hand. Its run_id would do as well, but
--- to ask for that costs a fifth of what it costs to start a job, and not everybody may.
---@return string address
function M.address()
  if not memory.LASTS then
    return tostring(redis.call)
  end
  known[1] = known[1] or tostring(redis.call)
  return known[1]
end

--- Functions and scripts live in Luas of their own, so there is a note of either.
---@return string key of the address at which ids were given last
function M.key()
  return memory.LASTS and keys.AT_FUNCTIONS or keys.AT_SCRIPTS
end

---@cold
---@return string? run_id nil where the user may not ask
function M.run_id()
  local info = redis.pcall("INFO", "server")
  return type(info) == "string" and info:match("run_id:(%x+)") or nil
end

---@cold
--- Notes this server as the one that gives ids.
---@return boolean whether it takes over from another one, as far as can be told
function M.take_over()
  local run_id = M.run_id()
  local before = redis.call("GET", keys.SERVER)
  local is_known = before and before == run_id -- only its Lua is new, or the other form of calls
  if run_id and not is_known then -- who may not ask must not have the other form of calls ask again and again
    redis.call("DEL", keys.AT_FUNCTIONS, keys.AT_SCRIPTS)
  end
  redis.call("MSET", keys.SERVER, run_id or before or "unknown", M.key(), M.address())
  return before and not is_known
end

return M
