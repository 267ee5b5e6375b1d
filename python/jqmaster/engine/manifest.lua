-- Makes a version the one of a namespace's manifest, and forgets the sources that no namespace needs any more
-- (docs/design.md). One script, so that no two loaders can come between each other.
--
-- KEYS: the manifest; the sources. ARGV: namespace; version; its library, and the operations that this has, both may
-- be empty; the libraries that Redis has; then the name and the sha of each script, and of the heads.
-- Gives 0 and what the sources lack, and has noted nothing then; else 1 and the libraries that nobody needs.
local manifest, sources = KEYS[1], KEYS[2]
local namespace, version, library, functions, loaded = unpack(ARGV, 1, 5)

local fields, needs = { "version", version, "sources", sources }, {}
local function add(name, value, needed)
  fields[#fields + 1], fields[#fields + 2] = name, value
  needs[#needs + 1] = needed
end
for i = 6, #ARGV, 2 do
  add(ARGV[i], ARGV[i + 1], ARGV[i + 1])
end
if library ~= "" then
  add("library", library, library)
  add("functions", functions)
end
local reply = { 0 }
for _, name in ipairs(needs) do
  if redis.call("HEXISTS", sources, name) == 0 then
    reply[#reply + 1] = name
  end
end
if reply[2] then
  return reply
end
redis.call("DEL", manifest)
redis.call("HSET", manifest, unpack(fields))

-- The sources say which namespace needs which of them.
redis.call("HSET", sources, "used:" .. namespace, table.concat(needs, " "))
local found, needed = redis.call("HKEYS", sources), {}
for _, field in ipairs(found) do
  local user = field:match("^used:(.*)$")
  -- Of a namespace that this user may not look at nothing is known: it may be there.
  if user and redis.pcall("EXISTS", user .. ":manifest") == 0 then
    redis.call("HDEL", sources, field)
  elseif user then
    for name in redis.call("HGET", sources, field):gmatch("%S+") do
      needed[name] = true
    end
  end
end
for _, field in ipairs(found) do
  if not field:find(":", 1, true) and not needed[field] then
    redis.call("HDEL", sources, field)
  end
end
reply[1] = 1
for name in loaded:gmatch("%S+") do
  if not needed[name] then
    reply[#reply + 1] = name
  end
end
return reply
