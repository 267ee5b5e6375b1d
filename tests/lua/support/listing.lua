-- Walking through the pages of what lists or changes jobs.
local msgpack = require "support.msgpack"

local M = {}

--- All documents, over all pages.
---@param each? fun(page: number) called between pages
---@return table[] documents
---@return number pages
function M.all(jq, spec, each)
  local documents, cursor = {}, nil
  for page = 1, 10000 do
    spec.cursor = cursor
    local reply = jq:call("jobs", spec)
    for i = 2, #reply do
      documents[#documents + 1] = msgpack.unpack(reply[i])
    end
    cursor = reply[1]
    if cursor == "" then
      return documents, page
    elseif each then
      each(page)
    end
  end
  error("the pages never end")
end

---@return string[] ids in the order they were listed
function M.ids(jq, where, more)
  local spec = { where = where }
  for field, value in pairs(more or {}) do
    spec[field] = value
  end
  local ids = {}
  for i, document in ipairs((M.all(jq, spec))) do
    ids[i] = document.id
  end
  return ids
end

--- Calls a script with `where` until it is through.
---@return number changed in all
---@return number calls
function M.change(jq, script, where, more, each)
  local changed, cursor = 0, nil
  for calls = 1, 1000 do
    local spec = { where = where, cursor = cursor }
    for field, value in pairs(more or {}) do
      spec[field] = value
    end
    local reply = jq:call(script, spec)
    cursor = reply[1]
    changed = changed + reply[2]
    if cursor == "" then
      return changed, calls
    elseif each then
      each(calls)
    end
  end
  error(script .. " never ends")
end

return M
