-- The engine's own spelling of keys, for specs that must reach below the protocol.
local made = {}

return function(namespace)
  if not made[namespace] then
    local chunk = assert(loadfile(os.getenv("JQ_SOURCE") .. "/jqlua/base/keys.lua"))
    setfenv(chunk, setmetatable({ KEYS = { namespace, namespace .. ":meta" } }, { __index = _G }))
    made[namespace] = chunk()
  end
  return made[namespace]
end
