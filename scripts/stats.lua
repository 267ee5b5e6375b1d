-- What happened: counts by minute, hour or day, and how long jobs waited and ran.
--
-- @arg    by       minute|hour|day      the length of a bucket
-- @arg    queue    name?
-- @arg    name     name?
-- @arg    from_ms  moment_ms?           buckets that begin then or later
-- @arg    to_ms    moment_ms?           buckets that begin before
-- @arg    brief    flag?                without histograms
-- @arg    series   flag?                a sum over the time for each pair of queue and name, instead of buckets
-- @arg    cursor   cursor?              with series
-- @arg    count    integer? 1..1000 = 100  with series
-- @reply  list<Stats> stats
-- @reply  page<Stats> series with series
-- @errors INVALID field
-- @flags  read
-- @role   viewer
-- @over   stats
-- @http   GET /stats
local fields = require "jqlua.base.fields"
local arguments = require "jqlua.base.arguments"
local statisticsdoc = require "jqlua.statistics.statisticsdoc"

local spec = arguments.spec(HEAD)
if spec.series then
  return statisticsdoc.series(spec)
end
fields.refuse(spec, "cursor count", "only valid with series")
return statisticsdoc.buckets(spec)
