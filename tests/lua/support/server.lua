-- Connections to the private Redis that tests/lua/run started, and the scripts loaded there.
local json = require "dkjson"
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

local function content(path)
  local file = assert(io.open(SCRIPTS .. "/" .. path, "rb"))
  local bytes = file:read("*a")
  file:close()
  return bytes
end

---@param set string settable or server
---@return string source of a built script, or of the library
function M.source(set, name)
  return content(set .. "/" .. name .. ".lua")
end

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

local functions = {}

--- Loads the library once.
---@param set string settable or server
---@return table<string, string> names of its functions, by operation
function M.functions(set)
  if not functions[set] then
    functions[set] = {}
    local library = json.decode(content(set .. "/manifest.json")).library
    if library then
      M.shared():call("FUNCTION", "LOAD", "REPLACE", M.source(set, "library"))
      for _, operation in ipairs(library.functions) do
        functions[set][operation] = library.name .. "_" .. operation
      end
    end
  end
  return functions[set]
end

-- In which form operations are called that have both.
M.FORM = os.getenv("JQ_FORM") or "functions"
assert(M.FORM == "functions" or M.FORM == "scripts", "JQ_FORM: expected functions or scripts")

--- How an operation is called.
---@param set string settable or server
---@param form? string functions or scripts
---@return string command FCALL or EVALSHA
---@return string called name or sha
function M.called(set, name, form)
  local called = (form or M.FORM) == "functions" and M.functions(set)[name]
  if called then
    return "FCALL", called
  end
  return "EVALSHA", M.sha(set, name)
end

return M
