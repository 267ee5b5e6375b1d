-- Documents of jobs that fit a description, a page in order.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {where?, newest?, brief?, cursor?, count?}
-- Reply  {cursor, document, ...}   the cursor is "" at the end; a page may be short, or empty, before that
-- Errors INVALID field
-- Cost   looks at 1000 jobs at most, wherever the page is; three reads more for each document
-- Flags: read
local arguments = require "jqlua.base.arguments"
local keys = require "jqlua.base.keys"
local check = require "jqlua.base.check"
local document = require "jqlua.job.document"
local find = require "jqlua.find.find"
local job = require "jqlua.job.record"
local where_of = require "jqlua.find.where"

local MOST_LOOKS = 1000

local spec, problem = arguments.spec("where newest brief cursor count")
if not spec then
  return redis.error_reply(problem)
end
local where, at
where, problem = where_of.parse(spec.where)
if where then
  at, problem = find.parse(spec, where)
end
for _, field in ipairs({ "newest", "brief" }) do
  if spec[field] ~= nil and type(spec[field]) ~= "boolean" then
    problem = problem or check.problem(field, "true or false", spec[field])
  end
end
if problem then
  return redis.error_reply(problem)
end
local found, cursor = find.page(where, at, {
  most = MOST_LOOKS, count = spec.count or 100, is_reversed = spec.newest,
})
local wanted = {}
for i, of in ipairs(found) do
  wanted[i] = keys.ARGUMENT .. of[job.ID]
end
local blobs = not spec.brief and wanted[1] and redis.call("MGET", unpack(wanted)) or {}
local reply = { cursor }
for i, of in ipairs(found) do
  reply[i + 1] = document.encode(of, blobs[i])
end
return reply
