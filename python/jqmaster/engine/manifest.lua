-- Notes a version in a namespace's manifest and among the sources, and forgets those that it keeps no longer
-- (docs/design.md). One script, so that no two loaders can come between each other.
--
-- KEYS: the manifest; the sources. ARGV: namespace; version; "1": it becomes current, and the one before stays
-- Gives 0 and what the sources lack, and has noted nothing then; else 1 and the libraries that nobody keeps.
local manifest, sources = KEYS[1], KEYS[2]
local namespace, version, is_current, library, functions, operations = unpack(ARGV, 1, 6)
is_current = is_current == "1"
local KEPT = 2

local function words(text)
  local list = {}
  for word in (text or ""):gmatch("%S+") do
    list[#list + 1] = word
  end
  return list
end

local function set_of(list, set)
  set = set or {}
  for _, word in ipairs(list) do
    set[word] = true
  end
  return set
end

local scripts, shas, needs = {}, {}, {}
for i = 7, #ARGV, 3 do
  scripts[#scripts + 1] = table.concat(ARGV, " ", i, i + 2)
  shas[ARGV[i]] = ARGV[i + 1]
  needs[#needs + 1] = ARGV[i + 1]
end
for _, name in ipairs({ library, operations }) do
  if name ~= "" then
    needs[#needs + 1] = name
  end
end
local lacking = { 0 }
for _, name in ipairs(needs) do
  if redis.call("HEXISTS", sources, name) == 0 then
    lacking[#lacking + 1] = name
  end
end
if lacking[2] then
  return lacking
end

-- Versions, the current one last.
local current = redis.call("HGET", manifest, "version") or ""
local before = words(redis.call("HGET", manifest, "versions"))
local kept = {}
for _, one in ipairs(before) do
  if one ~= version then
    kept[#kept + 1] = one
  end
end
if is_current then
  kept[#kept + 1] = version
  while #kept > KEPT do
    table.remove(kept, 1)
  end
elseif version == current then
  kept = before
else
  table.insert(kept, math.max(#kept, 1), version)
end
local is_kept = set_of(kept)

local fields = {
  "versions", table.concat(kept, " "), "sources", sources,
  version .. "/scripts", table.concat(scripts, "\n"),
}
local function add(name, value)
  fields[#fields + 1], fields[#fields + 2] = name, value
end
if library ~= "" then
  add(version .. "/library", library)
  add(version .. "/functions", functions)
end
if operations ~= "" then
  add(version .. "/operations", operations)
end

-- What this version does not have must not be found under its bare name; of versions that go, nothing.
local gone, libraries, stay = {}, {}, {}
if is_current then
  local bare = set_of({ "version", "versions", "sources", "operations" })
  add("version", version)
  for name, sha in pairs(shas) do
    bare[name] = true
    add(name, sha)
  end
  if library ~= "" then
    bare.library, bare.functions = true, true
    add("library", library)
    add("functions", functions)
  end
  if operations ~= "" then
    add("operations", operations)
  end
  for _, field in ipairs(redis.call("HKEYS", manifest)) do
    local owner, what = field:match("^(.*)/([^/]*)$")
    if not bare[field] and not is_kept[owner] then
      gone[#gone + 1] = field
    end
    if what == "library" then
      local to = is_kept[owner] and stay or libraries
      to[redis.call("HGET", manifest, field)] = true
    end
  end
end
for i = 1, #gone, 1000 do
  redis.call("HDEL", manifest, unpack(gone, i, math.min(i + 999, #gone)))
end
redis.call("HSET", manifest, unpack(fields))

-- The sources say which namespace keeps which versions, and what each of these needs.
local known = set_of(words(redis.call("HGET", sources, "needs:" .. version)), set_of(needs))
local list = {}
for name in pairs(known) do
  list[#list + 1] = name
end
table.sort(list)
redis.call("HSET", sources, "used:" .. namespace, table.concat(kept, " "), "needs:" .. version,
  table.concat(list, " "))
if not gone[1] then
  return { 1 }
end
local live, needed = {}, {}
local found = redis.call("HKEYS", sources)
for _, field in ipairs(found) do
  local name = field:match("^used:(.*)$")
  if name then
    -- Of a namespace that this user may not look at nothing is known: it may be there.
    if name ~= namespace and redis.pcall("EXISTS", name .. ":manifest") == 0 then
      redis.call("HDEL", sources, field)
    else
      set_of(words(redis.call("HGET", sources, field)), live)
    end
  end
end
for _, field in ipairs(found) do
  local one = field:match("^needs:(.*)$")
  if one and live[one] then
    set_of(words(redis.call("HGET", sources, field)), needed)
  elseif one then
    redis.call("HDEL", sources, field)
  end
end
for _, field in ipairs(found) do
  if not field:find(":", 1, true) and not needed[field] then
    redis.call("HDEL", sources, field)
  end
end
local reply = { 1 }
for name in pairs(libraries) do
  if not stay[name] and not needed[name] then
    reply[#reply + 1] = name
  end
end
return reply
