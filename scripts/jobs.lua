-- Finds jobs by what they are, a page in order.
--
-- A page may be short, or empty, before the end. A job that does not move meanwhile is seen exactly once.
--
-- @arg    where         Where?          conditions, all of which must hold
-- @arg    newest        flag?           the order within a state, a tag or a group turned round
-- @arg    brief         flag?           without argument, result and error
-- @arg    argument_max  integer? 0..65536  with brief: include arguments of at most this many bytes
-- @arg    looked        flag?           also return how many jobs were looked at
-- @arg    cursor        cursor?
-- @arg    count         integer? 1..1000 = 100
-- @reply  page<FoundJob> jobs
-- @errors INVALID field
-- @flags  read
-- @role   viewer
-- @over   each
-- @http   GET /jobs
local arguments = require "jqlua.base.arguments"
local budget = require "jqlua.job.budget"
local keys = require "jqlua.base.keys"
local jobdoc = require "jqlua.find.jobdoc"
local find = require "jqlua.find.find"
local jobs = require "jqlua.job.jobs"
local filter = require "jqlua.find.filter"

--- The argument, for a brief document, unless it is longer than argument_max.
local function preview_of(job, most)
  local argument = most and redis.call("GET", keys.ARGUMENT .. job[jobs.ID])
  budget.pay(budget.of_bytes(argument or ""))
  return argument and #argument <= most and argument or nil
end

local spec = arguments.spec(HEAD)
local where = filter.parse(spec.where)
local at = find.parse(spec, where)
local reply = { "", spec.looked and 0 or nil }
local cursor, looked = find.page(where, at, {
  count = spec.count or 100, is_reversed = spec.newest,
  take = function(job)
    local argument = not spec.brief and redis.call("GET", keys.ARGUMENT .. job[jobs.ID]) or nil
    local shown = jobdoc.encode(job, argument, preview_of(job, spec.argument_max))
    reply[#reply + 1] = shown
    budget.pay(budget.DOCUMENT + budget.of_bytes(shown))
  end,
})
reply[1], reply[2] = cursor, spec.looked and looked or reply[2]
return reply
