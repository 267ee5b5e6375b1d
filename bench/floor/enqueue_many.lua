-- enqueue.lua for many jobs in one call: one INCRBY, one MSET, one ZADD.
local count, prefix, format = #ARGV, KEYS[1] .. ":j:", string.format
local before = redis.call("INCRBY", KEYS[1] .. ":id", count) - count
local ids, records, members = {}, {}, {}
for i = 1, count do
  local id = format("%014x", before + i)
  ids[i] = id
  records[2 * i - 1], records[2 * i] = prefix .. id, ARGV[i]
  members[2 * i - 1], members[2 * i] = 0, id
end
redis.call("MSET", unpack(records))
redis.call("ZADD", KEYS[1] .. ":q", unpack(members))
return ids
