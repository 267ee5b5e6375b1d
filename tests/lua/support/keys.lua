-- The engine's own spelling of keys, for specs that must reach below the protocol.
return function(namespace)
  local chunk = assert(loadfile(os.getenv("JQ_SOURCE") .. "/jqlua/base/keys.lua"))
  setfenv(chunk, setmetatable({ KEYS = { namespace, namespace .. ":meta" } }, { __index = _G }))
  return chunk()
end
