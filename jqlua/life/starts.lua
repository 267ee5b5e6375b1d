---@lazy
-- What a request that starts jobs started. Who repeats it never got the answer.
local meta = require "jqlua.base.meta"
local attempts = require "jqlua.life.attempts"
local jobs = require "jqlua.job.jobs"
local request = require "jqlua.life.request"
local transition = require "jqlua.life.transition"

local M = {}

-- Remembered as the digits that all tokens of the call share, then of each job its id and which attempt it was.
local DIGITS = 12
local ENTRY = ">Bc0I4"

---@return string entry of a job that was started
function M.entry(id, number)
  return struct.pack(ENTRY, #id, id, number)
end

---@param entries string[] at least one
function M.remember(operation, token, entries)
  request.remember(operation, token, meta.random() .. table.concat(entries))
end

--- The jobs that this request started before, as far as their attempts still run: their leases begin anew, nobody had
--- them yet. For the same reason those that lapsed meanwhile have spent no retry, and those that ran for as long as
--- they may go back.
---@return table[]? jobs nil when nothing is known of the request
function M.recall(operation, token)
  local remembered = request.recall(operation, token)
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
    if job and attempts.is_of(job, number, digits) then
      if attempts.renew(job) > 0 then
        running[#running + 1] = job
      else
        attempts.give_back(job, 0) -- it may not run any longer
      end
    elseif job then
      attempts.forgive(job, number, digits)
    end
  end
  transition.commit()
  return running
end

return M
