---@lazy
-- Numbers that are given once in the life of a namespace: the same that job ids are made of.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"

local M = {}

local call = redis.call

---@return string digits as of an id
function M.next()
  local last = tonumber(call("GET", keys.SEQ) or "0", 16)
  local number = string.format("%014x", math.max(last, meta.state[meta.NOW_MS] * 1024 - 1) + 1)
  call("SET", keys.SEQ, number)
  return number
end

return M
