-- Documents of jobs.
-- KEYS   namespace, namespace:meta
-- ARGV   id, ...   1 to 1000
-- Reply  for each job its document, or nil
-- Errors INVALID ids[i]
-- Flags: read
local keys = require "jqlua.keys"
local meta = require "jqlua.meta"
local check = require "jqlua.check"
local job = require "jqlua.job"
local document = require "jqlua.document"

local MOST_IDS = 1000

local problem = meta.open()
if problem then
  return redis.error_reply(problem)
end
if #ARGV < 1 or #ARGV > MOST_IDS then
  return redis.error_reply("INVALID ids: expected 1 to " .. MOST_IDS .. " job ids, got " .. #ARGV)
end
for i, id in ipairs(ARGV) do
  if not check.is_id(id) then
    return redis.error_reply(check.problem("ids[" .. i - 1 .. "]", check.ID, id))
  end
end
local documents = {}
for i, id in ipairs(ARGV) do
  local of = job.read(id)
  documents[i] = of and document.encode(of, redis.call("GET", keys.ARGUMENT .. id)) or false
end
return documents
