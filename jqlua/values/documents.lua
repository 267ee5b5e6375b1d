-- Documents: maps of what cmsgpack packs, and of MessagePack that stays as it came, such as arguments.
local M = {}

---@param shown table fields that cmsgpack packs
---@param blobs? table<string, string> fields that are packed already
---@return string map
function M.pack(shown, blobs)
  local parts = {}
  for field, value in pairs(shown) do
    parts[#parts + 1] = cmsgpack.pack(field, value)
  end
  for field, blob in pairs(blobs or {}) do
    parts[#parts + 1] = cmsgpack.pack(field) .. blob
  end
  return struct.pack(">BI2", 0xDE, #parts) .. table.concat(parts)
end

---@param blobs string[] packed values
---@return string list
function M.list(blobs)
  return struct.pack(">BI2", 0xDC, #blobs) .. table.concat(blobs)
end

return M
