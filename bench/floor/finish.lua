-- The least that finishing can be: the lease and the job go.
redis.call("ZREM", KEYS[1] .. ":l", ARGV[1])
return redis.call("DEL", KEYS[1] .. ":j:" .. ARGV[1])
