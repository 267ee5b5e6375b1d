-- Pure modules of the engine in plain Lua, without Redis: each is loaded afresh, with stand-ins for what
-- Redis gives.
local MessagePack = require "MessagePack"

local M = {}

---@param name string of the module, as base.check
---@param argv? string[]
function M.module(name, argv)
  local environment = setmetatable({
    KEYS = { "{t}", "{t}:meta" },
    ARGV = argv or {},
    redis = {
      call = function(command)
        error("a pure module called " .. command)
      end,
    },
    cmsgpack = {
      pack = MessagePack.pack,
      -- As Redis has it: where the next value begins, -1 when there is none.
      unpack_one = function(bytes)
        local at, value = MessagePack.unpacker(bytes)()
        local rest = MessagePack.unpacker(bytes)
        rest()
        return rest() and at or -1, value
      end,
    },
    require = function(other)
      return M.module(other:match("^jqlua%.(.+)$"), argv)
    end,
  }, { __index = _G })
  local chunk = assert(loadfile(os.getenv("JQ_SOURCE") .. "/jqlua/" .. name:gsub("%.", "/") .. ".lua"))
  return setfenv(chunk, environment)()
end

return M
