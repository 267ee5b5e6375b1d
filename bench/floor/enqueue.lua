-- The least that enqueueing can be: an id, the argument, a place in the order.
local id = string.format("%014x", redis.call("INCR", KEYS[1] .. ":id"))
redis.call("SET", KEYS[1] .. ":j:" .. id, ARGV[1])
redis.call("ZADD", KEYS[1] .. ":q", 0, id)
return id
