-- The modules that read MessagePack and match jobs, by themselves, inside Redis.
local msgpack = require "support.msgpack"
local server = require "support.server"

local M = {}

local function source(name)
  local file = assert(io.open(os.getenv("JQ_SOURCE") .. "/jqlua/" .. name:gsub("%.", "/") .. ".lua", "rb"))
  local text = file:read("*a"):gsub("= KEPT", "= {}")
  file:close()
  return text
end

-- Actions by name, with ARGV behind it. Facts are one map without the argument.
local ACTIONS = [=[
local msgpack, matcher = require "jqlua.base.msgpack", require "jqlua.limits.matcher"
local matcherspec, jobpath = require "jqlua.limits.matcherspec", require "jqlua.values.jobpath"
local actions = {}
function actions.compile(match)
  local is_done, program = pcall(matcherspec.compile, match)
  if not is_done then
    return { "", program } -- as text: pcall of Redis gives no table
  end
  return { cmsgpack.pack(program), "" }
end
-- A program or none, facts, and arguments: one answer for each.
function actions.test(match, facts, ...)
  local program = cmsgpack.unpack(cmsgpack.pack(matcherspec.compile(match)))
  local answers = {}
  for i, argument in ipairs({ ... }) do
    local of = cmsgpack.unpack(facts)
    of.argument = argument
    answers[i] = tostring(matcher.test(program, of))
    -- What was found out the first time must not change the answer.
    if tostring(matcher.test(program, of)) ~= answers[i] then
      answers[i] = "changing"
    end
  end
  return answers[1] and answers or { tostring(matcher.test(program, cmsgpack.unpack(facts))) }
end
-- A path and arguments: one value for each.
function actions.value(path, ...)
  local compiled = jobpath.parse(path, "by")
  if type(compiled) == "table" then
    compiled = cmsgpack.unpack(cmsgpack.pack(compiled))
  end
  local values = {}
  for i, argument in ipairs({ ... }) do
    values[i] = jobpath.value(compiled, { argument = argument })
  end
  return values
end
-- Blobs: whether each is read as one value, and what it is then packed as.
function actions.read(shows_nil, ...)
  local answers = {}
  for i, blob in ipairs({ ... }) do
    local is_whole, value = msgpack.read(blob, shows_nil == "true")
    answers[i] = is_whole and cmsgpack.pack(value) or ""
  end
  return answers
end
function actions.parse(path)
  return cmsgpack.pack(jobpath.parse(path, "by"))
end
return actions[ARGV[1]](unpack(ARGV, 2))
]=]

local sha

--- The sources of a module and of all that it requires, as a chunk that notes them.
local function bundle(name, parts, known)
  if not known[name] then
    known[name] = true
    local text = source(name)
    for other in text:gmatch('require "jqlua%.([%w_.]+)"') do
      bundle(other, parts, known)
    end
    parts[#parts + 1] = ("sources['jqlua.%s'] = function()\n%s\nend\n"):format(name, text)
  end
end

--- Does something inside Redis.
---@param action string see ACTIONS
function M.inside(action, ...)
  if not sha then
    local parts = { "local sources, loaded = {}, {}\n", [[
local function require(name)
  loaded[name] = loaded[name] or sources[name]()
  return loaded[name]
end
]] }
    bundle("limits.matcherspec", parts, {})
    parts[#parts + 1] = ACTIONS
    sha = server.shared():call("SCRIPT", "LOAD", table.concat(parts))
  end
  return server.shared():call("EVALSHA", sha, 0, action, ...)
end

local function to_blob(match)
  return type(match) == "string" and match or msgpack.pack(match)
end

--- Compiles a matcher.
---@param match table|string a matcher, or its bytes
---@return string? program
---@return string? problem
function M.compile(match)
  local answer = M.inside("compile", to_blob(match))
  if answer[1] ~= "" then
    return answer[1]
  end
  return nil, answer[2]
end

--- Tests a job.
---@param facts table name, queue, priority, tags, argument; more arguments may follow
---@return string[] answers true, false or nil for each argument
function M.test(match, facts, ...)
  local of = msgpack.pack({ name = facts.name, queue = facts.queue, priority = facts.priority,
    tags = facts.tags and (facts.tags[1] and facts.tags or msgpack.raw("\144")) })
  if facts.argument then
    return M.inside("test", to_blob(match), of, facts.argument, ...)
  end
  return M.inside("test", to_blob(match), of)
end

return M
