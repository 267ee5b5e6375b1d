-- What failed for good, by group.
--
-- @arg    group    name?                 only that one; or
-- @arg    steps    integer? 1..100       with `counts`: how many failed in each of this many parts of the time
-- @arg    from_ms  moment_ms?            where the first part begins; with steps
-- @arg    to_ms    moment_ms?            where the last part ends; with steps
-- @arg    sample   integer? 1..100       with names, queues and values of this many of the newest
-- @arg    cursor   cursor?
-- @arg    count    integer? 1..1000 = 100
-- @reply  page<Failures> failures
-- @errors INVALID field
-- @flags  read
-- @role   viewer
-- @over   name
-- @http   GET /failures
local arguments = require "jqlua.base.arguments"
local groups = require "jqlua.find.groups"
local keys = require "jqlua.base.keys"
local page = require "jqlua.find.page"

local spec = arguments.spec(HEAD)
groups.check(spec)
return page.listing(keys.FAILED_GROUPS, spec, function(group)
  return groups.encode(group, spec)
end, { named = "group" })
