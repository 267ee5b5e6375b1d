-- Runs the conformance suite (tests/protocol, which says what the notation means) with this client. Needs lua-dkjson.
-- lua5.1 conformance.lua <directory of the suite> [URL of Redis] [namespace]      JQ_FORM=scripts: by EVALSHA alone
local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path
local json = require "dkjson"
local messagepack = require "MessagePack"
local socket = require "socket"
local jq = require "jq"

local directory, url, namespace = arg[1], arg[2] or "redis://127.0.0.1:6379", arg[3] or "{jq}"
local NULL = setmetatable({}, { __jsontype = "null" })

-- MessagePack's nil for null, an empty map for {}.
local pack_table = messagepack.packers.table
messagepack.packers.table = function(buffer, value)
  if value == NULL then
    messagepack.packers["nil"](buffer)
  elseif getmetatable(value) and getmetatable(value).__jsontype == "object" and next(value) == nil then
    messagepack.packers.map(buffer, value, 0)
  else
    pack_table(buffer, value)
  end
end

local function is_map(value)
  return type(value) == "table" and value ~= NULL and (getmetatable(value) or {}).__jsontype ~= "array"
end

local function show(value)
  return type(value) == "table" and json.encode(value) or tostring(value)
end

local Case = {}
Case.__index = Case

function Case:full(text)
  return (text:gsub("{tag}", function()
    return self.client.namespace
  end))
end

--- A value with what was captured in the place of its names.
function Case:filled(value)
  if type(value) == "table" and value ~= NULL then
    local copy = setmetatable({}, getmetatable(value))
    for key, item in pairs(value) do
      copy[self:filled(key)] = self:filled(item)
    end
    return copy
  end
  return type(value) == "string" and value:sub(1, 1) == "$" and self.captured[value] or value
end

function Case:argument(argument)
  if type(argument) == "string" then
    return self:filled(argument)
  elseif argument.hex then
    return (argument.hex:gsub("%x%x", function(digits)
      return string.char(tonumber(digits, 16))
    end))
  end
  return jq.pack(self:filled(argument.pack))
end

local function hex(bytes)
  return (bytes:gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end))
end

local WORDS = {
  ["$any"] = function(value) return value ~= nil end,
  ["$absent"] = function(value) return value == nil end,
  ["$text"] = function(value) return type(value) == "string" end,
  ["$number"] = function(value) return type(value) == "number" end,
  ["$integer"] = function(value) return type(value) == "number" and value % 1 == 0 end,
}

--- Raises where the value does not fit the pattern.
function Case:compare(pattern, value, path)
  local fits
  if is_map(pattern) and pattern.pack ~= nil and type(value) == "string" then
    return self:compare(pattern.pack, jq.unpack(value), path)
  elseif is_map(pattern) and pattern.hex then
    fits = type(value) == "string" and hex(value) == pattern.hex
  elseif WORDS[pattern] then
    fits = WORDS[pattern](value)
  elseif type(pattern) == "string" and pattern:sub(1, 1) == "$" then
    if self.captured[pattern] == nil then
      self.captured[pattern] = value
    end
    fits = value ~= nil and self.captured[pattern] == value
  elseif is_map(pattern) and pattern["$between"] then
    fits = type(value) == "number" and pattern["$between"][1] <= value and value <= pattern["$between"][2]
  elseif pattern == NULL then
    fits = value == nil
  elseif type(pattern) == "table" then
    fits = type(value) == "table" and (is_map(pattern) or table.maxn(value) <= #pattern)
    for key, item in pairs(fits and pattern or {}) do
      self:compare(item, value[key], path .. "." .. key)
    end
  else
    fits = pattern == value
  end
  if not fits then
    error(("%s: expected %s, got %s"):format(path, show(pattern), show(value)), 0)
  end
end

function Case:play(step)
  if step.subscribe then
    self.subscriber = jq.connect(url)
    return self.subscriber:command("SSUBSCRIBE", self:full(step.subscribe))
  elseif step.message then
    self.subscriber.connection.network.socket:settimeout(5)
    local message = self.subscriber.connection:read()[3]
    if not is_map(step.message) then
      local words = {}
      for word in message:gmatch("%S+") do
        words[#words + 1] = word
      end
      message = words
    end
    return self:compare(step.message, message, "message")
  end
  local sent = {}
  for i, part in ipairs(step.redis or step.args) do
    sent[i] = step.redis and self:full(part) or self:argument(part)
  end
  local ok, reply
  if step.redis then
    ok, reply = pcall(self.client.command, self.client, unpack(sent))
  else
    ok, reply = pcall(self.client.call, self.client, step.call, unpack(sent))
  end
  if step.error then
    local text = tostring(reply)
    local is_it = not ok and text:sub(1, #step.error) == step.error and text:find("^[: ]", #step.error + 1)
    return is_it or error("expected " .. step.error .. ", got " .. show(reply), 0)
  elseif not ok then
    error(reply, 0)
  elseif step.reply ~= nil then
    self:compare(step.reply, reply, "reply")
  end
end

function Case:run(case)
  if case.setup ~= false then
    self.client:call("setup")
  end
  for number, step in ipairs(case.steps) do
    local deadline = socket.gettime() + 5
    local ok, problem = pcall(self.play, self, step)
    while not ok and step["until"] and socket.gettime() < deadline do
      socket.sleep(0.01)
      ok, problem = pcall(self.play, self, step)
    end
    if not ok then
      error(("step %d: %s\n  %s"):format(number - 1, tostring(problem), json.encode(step)), 0)
    end
  end
end

function Case:close()
  if self.subscriber then
    self.subscriber:close()
  end
  local page = self.client:command("SCAN", 0, "MATCH", self.client.namespace .. ":*", "COUNT", 1000000)
  for _, key in ipairs(page[2]) do
    self.client:command("UNLINK", key)
  end
  self.client:close()
end

local all, failed = 0, 0
local names = assert(io.popen("ls '" .. directory .. "'/*.json"))
for name in names:lines() do
  local file = assert(io.open(name))
  local suite = assert(json.decode(file:read("*a"), 1, NULL))
  file:close()
  for _, each in ipairs(suite.cases) do
    local client = jq.connect(url, "{suite-" .. jq.token() .. "}", namespace)
    local case = setmetatable({ client = client, captured = {} }, Case)
    local ok, problem = pcall(case.run, case, each)
    case:close()
    all = all + 1
    if not ok then
      failed = failed + 1
      print(("FAILED %s: %s\n  %s"):format(suite.topic, each.case, problem))
    end
  end
end
names:close()
print(("%d of %d cases passed"):format(all - failed, all))
os.exit(failed == 0 and 0 or 1)
