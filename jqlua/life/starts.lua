-- Remembers which jobs a request started. A repeated request means that its reply was lost.
local meta = require "jqlua.base.meta"
local attempts = require "jqlua.life.attempts"
local jobs = require "jqlua.job.jobs"
local request = require "jqlua.life.request"
local transition = require "jqlua.life.transition"

local M = {}

-- Stored as the digits that all tokens of the call share, then each job's id and attempt.
local DIGITS = 12
local ENTRY = ">Bc0I4"

---@return string entry of a started job
function M.entry(id, number)
  return struct.pack(ENTRY, #id, id, number)
end

---@param entries string[] at least one
function M.remember(operation, token, entries)
  request.remember(operation, token, meta.random() .. table.concat(entries))
end

--- The jobs that this request started before and whose attempts still run: no worker received them, so their leases
--- begin again. Jobs beyond max_runtime are released.
---@param raw? string|false what is remembered, if it was read already
---@return table[]? jobs nil if the request is unknown
function M.recall(operation, token, raw)
  local remembered = request.recall(operation, token, raw)
  if not remembered then
    return nil
  end
  local digits = remembered:sub(1, DIGITS)
  local running = {}
  local at = DIGITS + 1
  while at <= #remembered do
    local id, number
    id, number, at = struct.unpack(ENTRY, remembered, at)
    local job = jobs.read(id)
    if job and attempts.is_current(job, number, digits) then
      if attempts.renew(job) > 0 then
        running[#running + 1] = job
      else
        attempts.release(job, 0) -- it may not run any longer
      end
    end
  end
  transition.commit()
  return running
end

return M
