-- Shared by export and import: a namespace as records, each a MessagePack list.
--   {"begin", schema, copy}                        copy: which export it is
--   {"key", suffix, type, ttl_ms, at, content}     suffix: behind "<namespace>:"; ttl_ms: 0 for none; at: how many
--                                                  elements stand in records before; content: a list of texts
--   {"end", copy, meta}
-- Content: of a string itself, of a list and a set its elements, of a hash field and value, of a sorted set member and
-- score: each in turn.
local keys = require "jqlua.base.keys"

local M = {}

-- In one place keys have the namespace inside them: behind the digest in those of groups (module limits.lane_index).
local GROUP_SIZE = #"group:" + 20 + #":"

---@param key string
---@return string suffix the same whatever the namespace
function M.suffix(key)
  local suffix = key:sub(#KEYS[1] + 2)
  if suffix:sub(1, 6) == "group:" and suffix:sub(GROUP_SIZE + 1, GROUP_SIZE + #KEYS[1]) == KEYS[1] then
    return suffix:sub(1, GROUP_SIZE) .. suffix:sub(GROUP_SIZE + #KEYS[1] + 1)
  end
  return suffix
end

---@return string key
function M.key(suffix)
  if suffix:sub(1, 6) == "group:" and #suffix >= GROUP_SIZE then
    return KEYS[1] .. ":" .. suffix:sub(1, GROUP_SIZE) .. KEYS[1] .. suffix:sub(GROUP_SIZE + 1)
  end
  return KEYS[1] .. ":" .. suffix
end

--- Whether a key is not copied as it is: meta comes last; manifest and sources are written by loaders; sleepers of the
--- old namespace do not sleep in the new one, and nobody there has read its events.
function M.is_apart(key)
  return key == keys.META or key == keys.MANIFEST or key == keys.SCRIPTS or key == keys.IMPORT or key == keys.SLEEPERS
    or key == keys.EVENTS or key:sub(1, #keys.ASLEEP) == keys.ASLEEP or key:sub(1, #keys.WAKE) == keys.WAKE
end

return M
