-- Documents of queues: those named, or a page in order of name.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {names?} or {cursor?, count?}
-- Reply  {cursor, document, ...}
-- Errors INVALID field
-- Flags: read
local arguments = require "jqlua.base.arguments"
local budget = require "jqlua.job.budget"
local keys = require "jqlua.base.keys"
local page = require "jqlua.find.page"
local queue = require "jqlua.queue.record"
local queuedoc = require "jqlua.queue.document"

---@return string? map nil for an unknown one
local function document(name)
  local owner = queue.load(name)
  return not owner[queue.IS_NEW] and queuedoc.encode(owner) or nil
end

local spec, problem = arguments.spec("names cursor count")
if not spec then
  return redis.error_reply(problem)
end
return page.listing(keys.QUEUE_NAMES, spec, document, {
  named = "names", what = "names of queues", price = budget.RECORD,
})
