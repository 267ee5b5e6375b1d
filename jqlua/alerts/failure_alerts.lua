-- Alerts about groups of failures that are new.
local alerts = require "jqlua.alerts.alerts"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local wording = require "jqlua.alerts.wording"

local M = {}

local call = redis.call

local HOUR_MS = 3600000
local RECENT_MS = 600000
local FEW = 3
local MANY = 50

---@param group string
function M.check(group)
  local key, now = keys.FAILED .. group, meta.state[meta.NOW_MS]
  local last = call("ZRANGE", key, -1, -1, "WITHSCORES")
  if not last[1] or tonumber(last[2]) < now - RECENT_MS then
    return
  end
  local first_ms = tonumber(call("ZRANGE", key, 0, 0, "WITHSCORES")[2])
  local count = call("ZCARD", key)
  if now - first_ms >= HOUR_MS or count < FEW then
    return
  end
  local raw = call("GET", keys.EXTRA .. last[1])
  local message = (raw and cmsgpack.unpack(raw).m or ""):match("^%s*([^\n]*)"):sub(1, 120)
  alerts.add({
    kind = "new_failures", level = count >= MANY and alerts.PROBLEM or alerts.WARNING, group = group,
    since_ms = first_ms,
    text = string.format("New failure %s: %s within %s%s", wording.name(group), wording.count(count, "job"),
      wording.span(math.max(1000, now - first_ms)), message ~= "" and ". The newest says: " .. message or ""),
    advice = "See its newest jobs; once the cause is mended, retry them.",
    values = { recent = call("ZCOUNT", key, now - RECENT_MS, "+inf"), message = message },
  }, count)
end

return M
