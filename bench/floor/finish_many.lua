-- finish.lua for many jobs in one call: one ZREM, one DEL.
local records = {}
for i = 1, #ARGV do
  records[i] = KEYS[1] .. ":j:" .. ARGV[i]
end
redis.call("ZREM", KEYS[1] .. ":l", unpack(ARGV))
return redis.call("DEL", unpack(records))
