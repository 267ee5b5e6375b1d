-- Lists the keys of a constraint that are in use.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {id, cursor?, count?}
-- Reply  {cursor, document, ...}
-- Errors INVALID field, NOTFOUND id
-- Flags: read
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local constraint = require "jqlua.limits.constraint"
local constraintdoc = require "jqlua.limits.constraintdoc"
local keys = require "jqlua.base.keys"
local page = require "jqlua.find.page"

local spec, problem = arguments.spec("id cursor count")
if not spec then
  return redis.error_reply(problem)
end
problem = not check.is_name(spec.id) and check.problem("id", check.NAME, spec.id) or constraintdoc.check_page(spec)
if problem then
  return redis.error_reply(problem)
end
local definition = constraint.load(spec.id)
if not definition then
  return redis.error_reply(check.missing("id", "constraint", spec.id))
end
local reply = page.documents(keys.KEYS_OF .. definition.n, spec, function(value)
  return constraintdoc.encode_key(definition, value)
end)
reply[1] = constraintdoc.cursor(reply[1])
return reply
