-- What follows an attempt that failed: a retry after a backoff, or the end.
local keys = require "jqlua.keys"
local meta = require "jqlua.meta"
local settings = require "jqlua.settings"
local job = require "jqlua.job"
local transition = require "jqlua.transition"

local M = {}

local call = redis.call

--- The rarely needed facts: {r reason, m message, f finished_at as given}.
function M.extra(of)
  if job.has(of, job.HAS_EXTRA) then
    local raw = call("GET", keys.EXTRA .. of[job.ID])
    return raw and cmsgpack.unpack(raw) or {}
  end
  return {}
end

function M.save_extra(of, extra)
  call("SET", keys.EXTRA .. of[job.ID], cmsgpack.pack(extra))
  job.set(of, job.HAS_EXTRA)
end

-- math.random repeats itself after a restart; a digest of what is unique about the attempt does not.
local function random(of)
  local now = string.format("%.0f", meta.state[meta.NOW_MS])
  local digest = redis.sha1hex(of[job.ID] .. ":" .. of[job.ATTEMPT] .. ":" .. now)
  return tonumber(digest:sub(1, 8), 16) / 4294967296
end

---@return number ms to wait before the next attempt
local function backoff_ms(of)
  local base, cap, jitter = settings.retry()
  local options = job.options(of)
  base, cap, jitter = options.retry_base or base, options.retry_cap or cap, options.retry_jitter or jitter
  if base == 0 then
    return 0 -- 0 times an infinite power would be no number
  end
  local ms = 1000 * math.min(cap, base * 2 ^ (of[job.FAILURES] - 1)) * (1 - jitter * random(of))
  return ms - ms % 1
end

local function record(of, reason, message, error_blob, finished_at)
  M.save_extra(of, { r = reason, m = message, f = finished_at })
  if error_blob then
    call("SET", keys.OUTCOME .. of[job.ID], error_blob)
    job.set(of, job.HAS_OUTCOME)
  elseif job.has(of, job.HAS_OUTCOME) then
    call("DEL", keys.OUTCOME .. of[job.ID])
    job.clear(of, job.HAS_OUTCOME)
  end
  job.save(of)
end

---@cold
--- The running attempt failed.
---@param how string f: the worker said so, l: the lease ran out or the worker is gone
---@return string state
function M.fail(of, how, reason, message, error_blob, should_retry, finished_at)
  local now = meta.state[meta.NOW_MS]
  of[job.HOW] = how
  of[job.FAILURES] = of[job.FAILURES] + 1
  of[job.ENDED_MS] = now
  local state = "retrying"
  local kept
  if should_retry and of[job.FAILURES] <= of[job.MAX_RETRY] then
    kept = transition.move(of, "t", now + backoff_ms(of))
  else
    state = "error"
    kept = transition.move(of, "e", now)
  end
  if kept then
    record(of, reason, message, error_blob, finished_at)
  end
  return state
end

---@cold
--- The job did not start in time.
---@param is_popped? boolean whether it is out of its queue already
function M.expire(of, is_popped)
  if transition.move(of, "e", meta.state[meta.NOW_MS], is_popped) then
    record(of, "expired", "not started within expires_in")
  end
end

return M
