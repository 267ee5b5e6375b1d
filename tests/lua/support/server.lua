-- Connections to the private Redis that tests/lua/run started, and the scripts loaded there. The client is our own: a
-- general one takes more time than all that Redis does for a short call.
local json = require "dkjson"
local unix = require "socket.unix"

local M = {}

local SOCKET = os.getenv("JQ_SOCKET")
local SCRIPTS = os.getenv("JQ_SCRIPTS")

local Connection = {}
Connection.__index = Connection

-- What stands before an argument of so many bytes.
local heads = {}

local function encoded(command, arguments)
  local parts = { "*" .. #arguments + 1 .. "\r\n$" .. #command .. "\r\n", command }
  for i = 1, #arguments do
    local argument = tostring(arguments[i])
    local head = heads[#argument]
    if not head then
      head = "\r\n$" .. #argument .. "\r\n"
      heads[#argument] = head
    end
    parts[2 * i + 1], parts[2 * i + 2] = head, argument
  end
  parts[#parts + 1] = "\r\n"
  return table.concat(parts)
end

local function received(socket, what)
  local bytes, problem = socket:receive(what)
  return bytes or error("connection: " .. problem, 0)
end

-- By the first byte of a reply.
local readers = {}

local function read(socket)
  local line = received(socket, "*l")
  return readers[line:byte()](socket, line:sub(2))
end

readers[("+"):byte()] = function(_, text)
  return text == "OK" or text
end
readers[("-"):byte()] = function(_, text)
  error(text, 0)
end
readers[(":"):byte()] = function(_, text)
  return tonumber(text)
end
readers[("$"):byte()] = function(socket, text)
  local size = tonumber(text)
  if size >= 0 then
    return received(socket, size + 2):sub(1, -3)
  end
end
readers[("*"):byte()] = function(socket, text)
  local size = tonumber(text)
  if size >= 0 then
    local list = {}
    for i = 1, size do
      list[i] = read(socket)
    end
    return list
  end
end

--- A command; an error reply is raised as its own text.
function Connection:call(command, ...)
  return self:call_list(command, { ... })
end

function Connection:call_list(command, arguments)
  self.socket:send(encoded(command, arguments))
  return read(self.socket)
end

--- The command once for each of these lists of arguments, all sent at once.
---@return table replies
function Connection:call_each(command, lists)
  local sent, replies = {}, {}
  for i, arguments in ipairs(lists) do
    sent[i] = encoded(command, arguments)
  end
  self.socket:send(table.concat(sent))
  for i = 1, #sent do
    replies[i] = read(self.socket)
  end
  return replies
end

--- Sends without reading the reply: for commands that block.
function Connection:send(command, ...)
  self.socket:send(encoded(command, { ... }))
end

--- The next reply, or what was published.
function Connection:read()
  return read(self.socket)
end

function Connection:close()
  self.socket:close()
end

---@return table connection
function M.connect()
  local socket = unix()
  assert(socket:connect(SOCKET))
  socket:settimeout(20) -- so that a test that waits for nothing fails, and does not hang
  return setmetatable({ socket = socket }, Connection)
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

local whole

--- The audit without a bound to what one call may do: of many jobs, many calls would count all again and again.
---@return string sha
function M.whole_audit()
  if not whole then
    local source, places = M.source("settable", "audit"):gsub("spent < %d+", "true")
    assert(places == 1, "audit: expected one place where it pays for what it does")
    whole = M.shared():call("SCRIPT", "LOAD", source)
  end
  return whole
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
