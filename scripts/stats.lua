-- What happened: counts by minute, hour or day, and how long jobs waited and ran.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {by, queue?, name?, from_ms?, to_ms?, brief?}, with series: true also {cursor?, count?}
-- Reply  {document, ...}, one for each bucket; with series {cursor, document, ...}, one for each pair of queue and name
-- Errors INVALID field
-- Cost   for each bucket asked for its part of an HMGET of one or two hashes; with series, of each pair on the page
-- Flags: read
local arguments = require "jqlua.base.arguments"
local statisticsdoc = require "jqlua.statistics.statisticsdoc"

local spec, problem = arguments.spec("by queue name from_ms to_ms series brief cursor count")
problem = problem or statisticsdoc.check(spec)
if problem then
  return redis.error_reply(problem)
end
if spec.series then
  return statisticsdoc.series(spec)
end
return statisticsdoc.buckets(spec)
