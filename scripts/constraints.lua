-- Lists constraints with their live use.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {ids?} or {cursor?, count?}
-- Reply  {cursor, document, ...}
-- Errors INVALID field
-- Flags: read
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local constraint = require "jqlua.limits.constraint"
local constraintdoc = require "jqlua.limits.constraintdoc"
local keys = require "jqlua.base.keys"
local page = require "jqlua.base.page"

local spec, problem = arguments.spec("ids cursor count")
if not spec then
  return redis.error_reply(problem)
end
local ids, cursor
if spec.ids ~= nil then
  if not check.is_list(spec.ids, 1, 1000) then
    return redis.error_reply(check.problem("ids", "a list of 1 to 1000 ids", spec.ids))
  end
  for i, id in ipairs(spec.ids) do
    if not check.is_name(id) then
      return redis.error_reply(check.problem("ids[" .. i - 1 .. "]", check.NAME, id))
    end
  end
  if spec.cursor ~= nil or spec.count ~= nil then
    return redis.error_reply("INVALID ids: expected either ids, or cursor and count, got both")
  end
  ids, cursor = spec.ids, ""
else
  problem = page.check(spec)
  if problem then
    return redis.error_reply(problem)
  end
  ids, cursor = page.read(keys.CONSTRAINT_IDS, spec)
end
local reply = { cursor }
for _, id in ipairs(ids) do
  local definition = constraint.load(id)
  if definition then
    reply[#reply + 1] = constraintdoc.encode(definition)
  end
end
return reply
