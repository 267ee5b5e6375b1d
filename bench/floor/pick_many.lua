-- pick.lua for up to ARGV[2] jobs in one call: one ZPOPMIN, one MGET, one ZADD.
local popped = redis.call("ZPOPMIN", KEYS[1] .. ":q", ARGV[2])
if #popped == 0 then return {{}, {}} end
local prefix, due_ms = KEYS[1] .. ":j:", ARGV[1]
local ids, records = {}, {}
for i = 1, #popped, 2 do
  local id = popped[i]
  ids[#ids + 1] = id
  records[#records + 1] = prefix .. id
  popped[i], popped[i + 1] = due_ms, id
end
redis.call("ZADD", KEYS[1] .. ":l", unpack(popped))
return {ids, redis.call("MGET", unpack(records))}
