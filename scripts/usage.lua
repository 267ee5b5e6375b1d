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
local page = require "jqlua.base.page"

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
local values, last = page.read(keys.KEYS_OF .. definition.n, spec)
local reply = { constraintdoc.cursor(last) }
for _, value in ipairs(values) do
  reply[#reply + 1] = constraintdoc.encode_key(definition, value)
end
return reply
