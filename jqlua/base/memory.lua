-- Memoization of what is computed from bytes alone. It is never stale: neither a restart nor a failover nor another
-- namespace changes what bytes mean. A function library remembers from call to call, a script only until the end of
-- its call.
--
-- A table of a module that begins as `{}` begins each call empty, in either form; one that begins as `KEPT`, empty too,
-- outlives calls in the library.
local M = {}

local MOST = 256
local LONGEST = 512

--- Remembers a value, within a limit.
---@param known table bytes -> what is known of them; [1] is their number
---@param bytes string
---@generic T
---@param value T not to be changed
---@return T value
function M.keep(known, bytes, value)
  if #bytes <= LONGEST then
    local count = (known[1] or 0) + 1
    if count > MOST then
      count = 1
      for other in next, known do
        known[other] = nil
      end
    end
    known[1], known[bytes] = count, value
  end
  return value
end

return M
