-- Lists constraints with their live use.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {ids?} or {cursor?, count?}
-- Reply  {cursor, document, ...}
-- Errors INVALID field
-- Flags: read
local arguments = require "jqlua.base.arguments"
local constraint = require "jqlua.limits.constraint"
local constraintdoc = require "jqlua.limits.constraintdoc"
local keys = require "jqlua.base.keys"
local page = require "jqlua.find.page"

local spec, problem = arguments.spec("ids cursor count")
if not spec then
  return redis.error_reply(problem)
end
local function document(id)
  local definition = constraint.load(id)
  return definition and constraintdoc.encode(definition)
end

return page.listing(keys.CONSTRAINT_IDS, spec, document, { named = "ids", what = "ids" })
