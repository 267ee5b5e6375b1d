-- What failed for good, by group.
--
-- @arg    group    name?                 only that one; or
-- @arg    cursor   cursor?
-- @arg    count    integer? 1..1000 = 100
-- @reply  page<Failures> failures
-- @errors INVALID field
-- @flags  read
-- @role   viewer
-- @over   name
-- @http   GET /failures
local arguments = require "jqlua.base.arguments"
local failure_groups = require "jqlua.links.failure_groups"
local keys = require "jqlua.base.keys"
local page = require "jqlua.find.page"

return page.listing(keys.FAILED_GROUPS, arguments.spec(HEAD), function(group)
  local shown = failure_groups.look(group)
  return shown and cmsgpack.pack(shown)
end, { named = "group" })
