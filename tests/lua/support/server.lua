-- Connections to the private Redis that tests/lua/run started, and the scripts loaded there.
local redis = require "redis"

local M = {}

local SOCKET = os.getenv("JQ_SOCKET")
local SCRIPTS = os.getenv("JQ_SCRIPTS")

local Connection = {}
Connection.__index = Connection

--- A command; an error reply is raised as its own text.
function Connection:call(command, ...)
  return self:call_list(command, { ... })
end

function Connection:call_list(command, arguments)
  self.client.requests.multibulk(self.client, command, arguments)
  return self:read()
end

--- Sends without reading the reply: for commands that block.
function Connection:send(command, ...)
  self.client.requests.multibulk(self.client, command, { ... })
end

--- The next reply, or what was published.
function Connection:read()
  return self.client:jq_read()
end

function Connection:close()
  self.client.network.socket:close()
end

---@return table connection
function M.connect()
  local client = redis.connect("unix://" .. SOCKET)
  client.error = function(message)
    error((message:gsub("^redis error: ", "")), 0)
  end
  client.network.socket:settimeout(20) -- so that a test that waits for nothing fails, and does not hang
  client.jq_read = redis.command("JQ_READ", { request = function() end })
  return setmetatable({ client = client }, Connection)
end

local shared

--- The connection that all specs share.
function M.shared()
  shared = shared or M.connect()
  return shared
end

---@param set string settable or server
---@return string source of a built script
function M.source(set, name)
  local file = assert(io.open(SCRIPTS .. "/" .. set .. "/" .. name .. ".lua", "rb"))
  local source = file:read("*a")
  file:close()
  return source
end

local libraries = {}
local shas = { settable = {}, server = {} }

--- Loads a script once.
---@param set string settable or server
---@return string sha
function M.sha(set, name)
  if not shas[set][name] then
    shas[set][name] = M.shared():call("SCRIPT", "LOAD", M.source(set, name))
  end
  return shas[set][name]
end

--- The library of functions, loaded once. With JQ_FORM=scripts there is none.
---@return table<string, string> functions by operation
function M.functions(set)
  if not libraries[set] then
    libraries[set] = {}
    if os.getenv("JQ_FORM") ~= "scripts" then
      local source = M.source(set, "library")
      M.shared():call("FUNCTION", "LOAD", "REPLACE", source)
      for operation in source:gmatch('function_name="jq_%x+_(%a+)"') do
        libraries[set][operation] = source:match("^#!lua name=(jq_%x+)") .. "_" .. operation
      end
    end
  end
  return libraries[set]
end

return M
