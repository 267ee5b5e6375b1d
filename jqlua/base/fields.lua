-- Fields of specs as data, and the one walker that checks them.
--
-- A field is {kind, least, most, of =, words =, required =, distinct =}. Kinds are the types of heads of scripts
-- (manifest/types.py); what is none of them, such as a document, is checked by who reads it. Least and most are of
-- numbers, of the bytes of a text, of how many entries a list has; `of` is the kind of these; `words` are those of a
-- choice, with blanks between.
local check = require "jqlua.base.check"

local M = {}

local NUMBERS = {
  integer = "an integer", number = "a number", seconds = "seconds", ms = "milliseconds", moment = "Unix seconds",
  moment_ms = "ms since 1970",
}
local EXPECTED = {
  flag = "true or false", message = "text", text = "text", token = "text of 1 to 200 bytes", map = "a map",
  queue = check.QUEUE, job = check.ID, lease = check.TOKEN, secret = check.SECRET,
  cursor = check.CURSOR, actor = check.SHORT_NAME,
  reference = "a job id, or the index of an earlier job of this call",
}
local MOST = 1e10 -- of what has no range of its own
local LATEST_MS = 1e15
local MOST_TOKEN = 200
local MOST_CURSOR = 1024

local ENTRIES = {
  job = "job ids", name = "names", worker = "workers", reference = "job ids or indexes",
  secret = "secrets", token = "tokens", text = "texts",
}

--- Powers of ten from 10^9 on are easier to read as such.
local function number_text(number)
  local power = number >= 1e9 and math.floor(math.log10(number) + 0.5)
  return power and number == 10 ^ power and "10^" .. power or string.format("%.15g", number)
end

--- How a text, a list or a number may be.
local function range(least, most)
  return number_text(least) .. " to " .. number_text(most)
end

local function is_word(value, words)
  return type(value) == "string" and value ~= "" and not value:find(" ", 1, true)
    and (" " .. words .. " "):find(" " .. value .. " ", 1, true) ~= nil
end

--- Whether a value is one of a field; entries of a list are not looked at.
---@return boolean
function M.is_valid(value, field)
  local kind, least, most = field[1], field[2], field[3]
  if kind == "integer" then
    return check.is_integer(value, least, most)
  elseif kind == "seconds" or kind == "number" or kind == "moment" or kind == "ms" then
    return check.is_number(value, least or 0, most or MOST)
  elseif kind == "name" or kind == "worker" or kind == "zone" then
    return check.is_name(value)
  elseif kind == "flag" then
    return type(value) == "boolean"
  elseif kind == "queue" then
    return check.is_queue(value)
  elseif kind == "job" then
    return check.is_id(value)
  elseif kind == "reference" then
    return check.is_id(value) or check.is_integer(value, 0, MOST)
  elseif kind == "list" then
    return check.is_list(value, least or 0, most or MOST)
  elseif kind == "choice" then
    return is_word(value, field.words)
  elseif kind == "cursor" then
    return type(value) == "string" and #value <= (most or MOST_CURSOR)
  elseif kind == "text" or kind == "message" then
    return type(value) == "string" and #value >= (least or 0) and #value <= (most or math.huge)
  elseif kind == "token" then
    return type(value) == "string" and #value > 0 and #value <= MOST_TOKEN
  elseif kind == "lease" then
    return check.is_token(value)
  elseif kind == "url" then
    return check.is_url(value)
  elseif kind == "actor" then
    return check.is_short_name(value)
  elseif kind == "secret" then
    return check.is_secret(value)
  elseif kind == "moment_ms" then
    return check.is_number(value, 0, LATEST_MS)
  elseif kind == "map" then
    return type(value) == "table"
  end
  return true
end

--- What a value of a field is, for errors.
local function expected(field)
  local kind, least, most = field[1], field[2], field[3]
  if NUMBERS[kind] then
    return NUMBERS[kind] .. " from " .. range(least or 0, most or kind == "moment_ms" and LATEST_MS or MOST)
  elseif kind == "list" then
    return "a list of " .. range(least, most) .. " " .. (ENTRIES[field.of] or "values")
  elseif kind == "choice" then
    return "one of " .. field.words:gsub(" ", ", ")
  elseif kind == "text" and most then
    return "text of " .. range(least or 0, most) .. " bytes"
  end
  return EXPECTED[kind] or check.NAME
end

--- Refuses the call for a value. What may be part of a secret is not shown.
local function refuse(path, value, field)
  if field[1] == "url" then
    check.refuse(check.problem_of_url(path, value))
  elseif field.of == "secret" or field[1] == "secret" then
    check.refuse("INVALID " .. path .. ": expected " .. expected(field))
  end
  check.refuse(check.problem(path, expected(field), value))
end

--- Checks a value: refuses the call if it is none of its field.
---@param field table
---@param prefix string in front of its name in errors, such as "jobs[0]."
---@param name string
function M.check_value(value, field, prefix, name)
  if not M.is_valid(value, field) then
    refuse(prefix .. name, value, field)
  elseif field.of then
    local entry_field, seen = { field.of, words = field.words }, {}
    for i, entry in ipairs(value) do
      local path = prefix .. name .. "[" .. i - 1 .. "]"
      if not M.is_valid(entry, entry_field) then
        refuse(path, entry, entry_field)
      end
      if field.distinct then
        check.refuse(seen[entry] and "INVALID " .. path .. ": duplicate value " .. check.show(entry))
        seen[entry] = true
      end
    end
  end
end

--- Refuses the call for a field that is not known.
---@param path string of the map, "" for the call's own spec
---@param ... table<string, table> fields that are known
function M.unknown(path, name, ...)
  local known = {}
  for _, fields in ipairs({ ... }) do
    for other in pairs(fields) do
      known[#known + 1] = other
    end
  end
  table.sort(known)
  check.refuse(check.unknown(path, name, table.concat(known, " ")))
end

--- Refuses the call if a required field is missing.
---@param prefix string in front of its name in errors
function M.check_required(spec, fields, prefix)
  for name, field in pairs(fields) do
    if field.required and spec[name] == nil then
      check.refuse(check.problem(prefix .. name, expected(field), nil))
    end
  end
end

--- Refuses the call if it has any of these fields.
---@param names string separated by blanks
---@param why string
function M.refuse(spec, names, why)
  for name in names:gmatch("%S+") do
    check.refuse(spec[name] ~= nil and "INVALID " .. name .. ": " .. why)
  end
end

--- Checks a map: refuses the call for an unknown, wrong or missing field.
---@param fields table<string, table>
---@param path? string of the map; without, it is the call's own spec
function M.check(spec, fields, path)
  local prefix = path and path .. "." or ""
  check.refuse(type(spec) ~= "table" and check.problem(path or "spec", "a map", spec))
  for name, value in pairs(spec) do
    local field = fields[name]
    if not field then
      M.unknown(path or "", name, fields)
    end
    M.check_value(value, field, prefix, name)
  end
  M.check_required(spec, fields, prefix)
end

return M
