-- What is published on a shard channel while a test runs.
local server = require "support.server"

local M = {}

local Listener = {}
Listener.__index = Listener

---@param jq table the test's namespace
---@param channel string
---@return table listener
function M.new(jq, channel)
  local connection = server.connect()
  connection:call("SSUBSCRIBE", channel)
  return setmetatable({ jq = jq, channel = channel, connection = connection }, Listener)
end

--- What has been published since the last look, up to a mark of our own.
---@return string[]
function Listener:heard()
  self.jq:redis("SPUBLISH", self.channel, "mark")
  local messages = {}
  while true do
    local message = self.connection:read()[3]
    if message == "mark" then
      return messages
    end
    messages[#messages + 1] = message
  end
end

function Listener:close()
  self.connection:close()
end

return M
