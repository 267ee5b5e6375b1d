-- Applies letters of other partitions; of couriers.
-- KEYS   namespace, namespace:meta
-- ARGV   letter, letter, ...   1 to 100 of them, as outbox gives them
-- Reply  for each letter what its sender is told: ok; to follow the state of the job, or gone, and a mark of the
--        server; to enqueue made, id and created, or free, or old; or why it was refused: INVALID, CONFLICT (it is for
--        somebody else), VERSION (of a later format), ROUTE (of another generation)
-- Errors INVALID letters
-- Cost   a few commands for each, and then a sweep, as a pick has it
-- Flags: drain
local check = require "jqlua.base.check"
local letters = require "jqlua.links.letters"
local meta = require "jqlua.base.meta"
local pulse = require "jqlua.life.pulse"
local sweep = require "jqlua.life.sweep"

local MOST_LETTERS = 100
local MOST_STEPS = 100

local problem = meta.open()
if not problem and not check.is_integer(#ARGV, 1, MOST_LETTERS) then
  problem = "INVALID letters: expected 1 to " .. MOST_LETTERS .. ", got " .. #ARGV
end
if problem then
  return redis.error_reply(problem)
end
local reply = {}
for i, blob in ipairs(ARGV) do
  reply[i] = letters.apply(blob, "letters[" .. i - 1 .. "]")
end
if pulse.is_due() then
  pulse.note() -- what the sweep ends may not have been renewed
end
sweep.run(MOST_STEPS) -- what they say takes effect at once, as far as a call goes
return reply
