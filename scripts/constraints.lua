-- Lists constraints with their live use.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {ids?, busiest?} or {cursor?, count?, busiest?}
-- Reply  {cursor, document, ...}
-- Errors INVALID field
-- Flags: read
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local constraint = require "jqlua.limits.constraint"
local constraintdoc = require "jqlua.limits.constraintdoc"
local keys = require "jqlua.base.keys"
local page = require "jqlua.find.page"

local MOST_BUSIEST = 100

local spec, problem = arguments.spec("ids busiest cursor count")
if not spec then
  return redis.error_reply(problem)
end
local busiest = spec.busiest
if busiest ~= nil and not check.is_integer(busiest, 0, MOST_BUSIEST) then
  return redis.error_reply(check.problem("busiest", "an integer from 0 to " .. MOST_BUSIEST, busiest))
end
local is_only = type(spec.ids) == "table" and #spec.ids == 1
local function document(id)
  local definition = constraint.load(id)
  return definition and constraintdoc.encode(definition, busiest, is_only)
end

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
else
  problem = page.check(spec)
  if problem then
    return redis.error_reply(problem)
  end
  return page.documents(keys.CONSTRAINT_IDS, spec, document)
end
local reply = { "" }
for _, id in ipairs(spec.ids) do
  reply[#reply + 1] = document(id)
end
return reply
