-- The least that picking can be: the first job, its argument, a lease.
local id = redis.call("ZPOPMIN", KEYS[1] .. ":q")[1]
if not id then return false end
local argument = redis.call("GET", KEYS[1] .. ":j:" .. id)
redis.call("ZADD", KEYS[1] .. ":l", ARGV[1], id)
return {id, argument}
