-- What failed for good, by group.
--
-- @arg    group    name?                 only that one; or
-- @arg    steps    integer? 1..100       with `counts`: how many failed in each of so many parts of the time
-- @arg    from_ms  moment_ms?            where the first part begins; with steps
-- @arg    to_ms    moment_ms?            where the last part ends; with steps
-- @arg    sample   integer? 1..100       with names, queues and values of so many of the newest
-- @arg    cursor   cursor?
-- @arg    count    integer? 1..1000 = 100
-- @reply  page<Failures> failures
-- @errors INVALID field
-- @flags  read
-- @role   viewer
-- @over   name
-- @http   GET /failures
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local groups = require "jqlua.find.groups"
local keys = require "jqlua.base.keys"
local page = require "jqlua.find.page"

local spec = arguments.spec("group steps from_ms to_ms sample cursor count")
local group = spec.group
local problem
if group ~= nil and not check.is_name(group) then
  problem = check.problem("group", check.NAME, group)
elseif group ~= nil and (spec.cursor ~= nil or spec.count ~= nil) then
  problem = "INVALID group: expected either group, or cursor and count, got both"
end
check.refuse(problem or page.check(spec) or groups.check(spec))
local function document(name)
  return groups.encode(name, spec)
end
if group then
  return { "", document(group) }
end
return page.documents(keys.FAILED_GROUPS, spec, document)
