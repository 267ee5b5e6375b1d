-- Documents of queues, with settings and counts: those named, or a page in order of name.
--
-- @arg    names    list<name>? 1..1000  those named; or
-- @arg    minutes  integer? 1..180       with figures of this many minutes
-- @arg    today    flag?                 with what happened since midnight UTC; at most 100 at once
-- @arg    cursor   cursor?
-- @arg    count    integer? 1..1000 = 100
-- @reply  page<Queue> queues
-- @errors INVALID field
-- @flags  read
-- @role   viewer
-- @over   name
-- @http   GET /queues
local arguments = require "jqlua.base.arguments"
local budget = require "jqlua.job.budget"
local keys = require "jqlua.base.keys"
local page = require "jqlua.find.page"
local queues = require "jqlua.queue.queues"
local queue_status = require "jqlua.find.queue_status"

local spec = arguments.spec(HEAD)

---@return string? map nil if unknown
local function document(name)
  local queue = queues.load(name)
  return not queue[queues.IS_NEW] and queue_status.encode(queue, spec) or nil
end

return page.listing(keys.QUEUE_NAMES, spec, document, {
  named = "names", price = budget.RECORD, most = spec.today and 100 or nil,
})
