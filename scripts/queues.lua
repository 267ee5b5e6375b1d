-- Documents of queues: those named, or a page in order of name.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {names?} or {cursor?, count?}, with {minutes?, held?}
-- Reply  {cursor, document, ...}
-- Errors INVALID field
-- Flags: read
local arguments = require "jqlua.base.arguments"
local budget = require "jqlua.job.budget"
local keys = require "jqlua.base.keys"
local check = require "jqlua.base.check"
local page = require "jqlua.find.page"
local queue = require "jqlua.queue.record"
local queuedoc = require "jqlua.queue.document"

local spec, problem = arguments.spec("names cursor count minutes held")

---@return string? map nil for an unknown one
local function document(name)
  local owner = queue.load(name)
  return not owner[queue.IS_NEW] and queuedoc.encode_standing(owner, spec.minutes, spec.held) or nil
end

if not spec then
  return redis.error_reply(problem)
end
for field, most in pairs({ minutes = 180, held = 1000 }) do
  if spec[field] ~= nil and not check.is_integer(spec[field], 1, most) then
    return redis.error_reply(check.problem(field, "an integer from 1 to " .. most, spec[field]))
  end
end
problem = page.check(spec)
if problem then
  return redis.error_reply(problem)
end
local names = spec.names
if names == nil then
  return page.documents(keys.QUEUE_NAMES, spec, document, budget.RECORD)
elseif spec.cursor ~= nil or spec.count ~= nil then
  return redis.error_reply("INVALID names: expected either names, or cursor and count, got both")
elseif not check.is_list(names, 1, 1000) then
  return redis.error_reply(check.problem("names", "a list of 1 to 1000 names of queues", names))
end
for i, name in ipairs(names) do
  if not check.is_name(name) then
    return redis.error_reply(check.problem("names[" .. i - 1 .. "]", check.NAME, name))
  end
end
local reply = { "" }
for _, name in ipairs(names) do
  reply[#reply + 1] = document(name)
end
return reply
