-- A job as readers see it: one MessagePack map. Argument, result and error are spliced in as they came.
local keys = require "jqlua.keys"
local meta = require "jqlua.meta"
local index = require "jqlua.index"
local job = require "jqlua.job"
local failure = require "jqlua.failure"

local M = {}

local pack = cmsgpack.pack

---@param of table a job that was read whole
---@return string map
function M.encode(of)
  local parts = {}
  local count = 0
  local function put(field, value)
    count = count + 1
    parts[count] = pack(field, value)
  end
  local function splice(field, bytes)
    count = count + 1
    parts[count] = pack(field) .. bytes
  end
  local state = of.state
  put("id", of.id)
  put("name", of.name)
  put("queue", of.queue)
  put("status", job.state_name(state))
  put("priority", of.priority)
  put("attempt", of.attempt)
  put("retry_count", of.failures)
  put("max_retry", of.max_retry)
  put("timeout", of.timeout_ms / 1000)
  put("keep_result", job.has(of, job.KEEP_RESULT))
  put("created_ms", job.created_ms(of.id))
  splice("argument", job.argument(of))
  if of.attempt > 0 then
    put("worker_id", job.worker(of))
    put("started_ms", of.started_ms)
  end
  local score = tonumber(redis.call("ZSCORE", index.key(state, of.queue), of.id))
  if state == "s" or state == "t" or state == "r" then
    put("due_ms", score)
  elseif state == "k" then
    put("ended_ms", of.ended_ms)
  elseif state ~= "q" and state ~= "b" then
    put("ended_ms", score)
  end
  for field, value in pairs(job.options(of)) do
    put(field, value)
  end
  local has_outcome = job.has(of, job.HAS_OUTCOME)
  if job.has(of, job.HAS_EXTRA) then
    local extra = failure.extra(of)
    if extra.r then
      put("reason", extra.r)
      put("message", extra.m)
    end
    if extra.f then
      put("finished_at", extra.f)
    end
  end
  if has_outcome and state ~= "k" then
    splice("error", redis.call("GET", keys.OUTCOME .. of.id))
  elseif state == "k" and score > meta.state.now_ms then
    splice("result", redis.call("GET", keys.OUTCOME .. of.id))
  end
  -- A map of more than 15 has a two byte size.
  return struct.pack(">BI2", 0xDE, count) .. table.concat(parts)
end

return M
