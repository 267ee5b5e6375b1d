-- The modules that read MessagePack and match jobs, by themselves: in plain Lua, where all is walked over, and inside
-- Redis, with its cmsgpack and its limits.
local luassert = require "luassert"
local msgpack = require "support.msgpack"
local server = require "support.server"

local M = {}

local function source(name)
  local file = assert(io.open(os.getenv("JQ_SOURCE") .. "/jqlua/" .. name:gsub("%.", "/") .. ".lua", "rb"))
  local text = file:read("*a"):gsub("= KEPT", "= {}")
  file:close()
  return text
end

local loaded = {}

local function float(high, fraction, bits, bias)
  local exponent = math.floor(high % 2 ^ 31 / 2 ^ (bits % 32))
  local sign = high < 2 ^ 31 and 1 or -1
  if exponent == 2 * bias + 1 then
    return fraction == 0 and sign / 0 or 0 / 0
  end
  return sign * math.ldexp(exponent == 0 and fraction or fraction + 2 ^ bits, math.max(exponent, 1) - bias - bits)
end

local function integer(bytes, pos, size)
  local value = 0
  for i = pos, pos + size - 1 do
    value = value * 256 + bytes:byte(i)
  end
  return value
end

--- struct.unpack, of numbers alone.
local function read_number(format, bytes, pos)
  local high = integer(bytes, pos, tonumber(format:match("%d")) or (format:find("[fd]") and 4 or 1))
  if format == ">I4I4" then
    return high, integer(bytes, pos + 4, 4)
  elseif format == ">d" then
    return float(high, high % 2 ^ 20 * 2 ^ 32 + integer(bytes, pos + 4, 4), 52, 1023)
  elseif format == ">f" then
    return float(high, high % 2 ^ 23, 23, 127)
  end
  local whole = 256 ^ (tonumber(format:match("%d")) or 1)
  return format:find("[bi]") and high >= whole / 2 and high - whole or high
end

--- A module in plain Lua. Its cmsgpack refuses everything, as that of Redis refuses bin.
function M.module(name)
  if not loaded[name] then
    local environment = setmetatable({
      cmsgpack = {
        unpack_one = function()
          error("Bad data format in input.")
        end,
      },
      struct = { unpack = read_number },
      redis = {
        error_reply = function(text)
          return { err = text }
        end,
      },
      require = function(other)
        return M.module(other:match("^jqlua%.(.+)$"))
      end,
    }, { __index = _G })
    loaded[name] = setfenv(assert(loadstring(source(name), "@" .. name)), environment)()
  end
  return loaded[name]
end

--- What a call gives, or nil and the text of its refusal.
function M.try(call, ...)
  local is_done, answer = pcall(call, ...)
  if is_done then
    return answer
  elseif type(answer) ~= "table" then
    error(answer, 0)
  end
  return nil, answer.err
end

--- Compiles in plain Lua.
function M.plain(blob)
  return M.try(M.module("limits.matcherspec").compile, blob)
end

-- Actions by name, with ARGV behind it. Facts are one map without the argument.
local ACTIONS = [=[
local msgpack, matcher = require "jqlua.values.msgpack", require "jqlua.limits.matcher"
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
function actions.whole(...)
  local answers = {}
  for i, blob in ipairs({ ... }) do
    answers[i] = tostring(msgpack.is_whole(blob))
  end
  return answers
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

--- Compiles in plain Lua and inside Redis, which must agree.
---@param match table|string a matcher, or its bytes
---@return table? program
---@return string? problem
function M.compile(match)
  local program, problem = M.plain(to_blob(match))
  local inside = M.inside("compile", to_blob(match))
  if program then
    luassert.are_not.equal("", inside[1], inside[2])
    luassert.are.equal("", inside[2])
  else
    luassert.are.equal(problem, inside[2])
  end
  return program, problem
end

--- Tests inside Redis, where arguments are decoded when that is sound.
---@return string answer true, false or nil
function M.test_inside(match, facts)
  local of = msgpack.pack({ name = facts.name, queue = facts.queue, priority = facts.priority,
    tags = facts.tags and (facts.tags[1] and facts.tags or msgpack.raw("\144")) })
  return M.inside("test", to_blob(match), of, facts.argument)[1]
end

--- Tests in plain Lua, where arguments are walked over, and inside Redis, which must agree.
---@return boolean? answer
function M.test(match, facts)
  local matcher = M.module("limits.matcher")
  local program = assert(M.plain(to_blob(match)))
  local answer = matcher.test(program, facts)
  luassert.are.equal(answer, matcher.test(program, facts), "when asked again")
  luassert.are.equal(tostring(answer), M.test_inside(match, facts))
  return answer
end

return M
