-- Audit of keys of the HTTP API: ids, records and uses agree.
local keys = require "jqlua.base.keys"

local M = {}

local call = redis.call

function M.check(problems)
  local records, ids = call("HLEN", keys.API_KEYS), call("ZCARD", keys.API_KEY_IDS)
  if records ~= ids then
    problems[#problems + 1] = "there are " .. records .. " keys of the API and " .. ids .. " ids of them"
  end
  for _, id in ipairs(call("HKEYS", keys.API_KEY_USES)) do
    if call("HEXISTS", keys.API_KEYS, id) == 0 then
      problems[#problems + 1] = "key " .. id .. " of the API was used and is not there"
    end
  end
end

return M
