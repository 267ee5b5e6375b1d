-- What one call may cost. Redis does nothing else while it runs, so whatever works through more than the call named
-- pays for each step and stops when the budget is spent: the rest stays due, or is behind the cursor. Steps differ by
-- what a job carries, so their cost is bounded, not their number.
--
-- A unit is some ten microseconds of Redis. Prices are rounded up. What else a call does, and the step that exceeds
-- the budget, come on top.
local jobs = require "jqlua.job.jobs"
local meta = require "jqlua.base.meta"

local M = {}

M.MOST = 600
-- A sweep leaves this much for the call itself: otherwise a pick would find no job while much is due.
M.RESERVE = 220

-- Reading without a change: an entry of an index, a record.
M.LOOK = 0.3
-- A condition of a constraint that is tested for a job.
M.CONDITION = 0.1
-- Reading or writing something small: a key of a constraint, a lane that is parked.
M.STEP = 4
-- A queue, worker or schedule whose record is read and written, with timers and statistics of its own.
M.RECORD = 5
-- A document, without its bytes.
M.DOCUMENT = 2.5
-- A job that changes its state, or starts in a lane, without what it carries.
local JOB = 2
local OPTIONS_PER_UNIT = 500 -- bytes: tags and the like are read, written and indexed
local UNITS_PER_UNIT = 10 -- bytes: each is a key to be read and written, and lanes to be moved
local BYTES_PER_UNIT = 1000 -- that go into a document, or are searched
-- A reply that has so many bytes gets no job more.
M.MOST_BYTES = 4194304

---@param units number negative: a refund
---@return boolean # whether anything is left
function M.pay(units)
  local spent = meta.state[meta.SPENT] + units
  meta.state[meta.SPENT] = spent
  return spent < M.MOST
end

---@return boolean
function M.is_left()
  return meta.state[meta.SPENT] < M.MOST
end

---@return number units
function M.of_job(job)
  return JOB + #job[jobs.OPTIONS] / OPTIONS_PER_UNIT + #job[jobs.UNITS] / UNITS_PER_UNIT
end

---@param bytes string
---@return number units
function M.of_bytes(bytes)
  return #bytes / BYTES_PER_UNIT
end

--- An argument that is decoded.
---@param argument string
---@return number units
function M.of_argument(argument)
  return M.LOOK + 4 * M.of_bytes(argument)
end

return M
