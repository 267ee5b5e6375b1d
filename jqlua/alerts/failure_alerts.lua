-- Alerts about groups of failures that are new, or grow faster than they did.
local alerts = require "jqlua.alerts.alerts"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local wording = require "jqlua.alerts.wording"

local M = {}

local call = redis.call

local HOUR_MS = 3600000
local DAY_MS = 86400000
local RECENT_MS = 600000
local FEW = 3 -- new failures
local MANY = 50
local GROWS = 10 -- failures in the last minutes
local TIMES = 5 -- as many as usual

---@param group string
function M.check(group)
  local key, now = keys.FAILED .. group, meta.state[meta.NOW_MS]
  local last = call("ZRANGE", key, -1, -1, "WITHSCORES")
  if not last[1] or tonumber(last[2]) < now - RECENT_MS then
    return
  end
  local first_ms = tonumber(call("ZRANGE", key, 0, 0, "WITHSCORES")[2])
  local recent = call("ZCOUNT", key, now - RECENT_MS, "+inf")
  local raw = call("GET", keys.EXTRA .. last[1])
  local message = (raw and cmsgpack.unpack(raw).m or ""):match("^%s*([^\n]*)"):sub(1, 120)
  local kind, level, text, count
  if now - first_ms < HOUR_MS then
    kind, count = "new_failures", call("ZCARD", key)
    level = count >= MANY and alerts.PROBLEM or count >= FEW and alerts.WARNING
    text = string.format("New failure %s: %s within %s", wording.name(group), wording.count(count, "job"),
      wording.span(math.max(1000, now - first_ms)))
  else
    kind, count = "more_failures", recent
    local before = call("ZCOUNT", key, now - DAY_MS, now - RECENT_MS)
    local usual = before * RECENT_MS / math.min(DAY_MS, now - first_ms)
    level = recent >= GROWS and recent >= TIMES * usual and alerts.WARNING
    text = string.format("Failure %s: %s in the last 10 min, usually %.1f", wording.name(group),
      wording.count(recent, "job"), usual)
  end
  if level then
    alerts.add({
      kind = kind, level = level, group = group, since_ms = first_ms,
      text = text .. (message ~= "" and ". The newest says: " .. message or ""),
      advice = "See its newest jobs; once the cause is mended, retry them.",
      values = { recent = recent, message = message },
    }, count)
  end
end

return M
