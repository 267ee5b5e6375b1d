-- Fields of specs as data, and the one walker that checks them.
--
-- A field is {kind, least, most, of =, words =, required =, distinct =}. Kinds are the types of heads of scripts
-- (manifest/contract.py); what is none of them, such as a document, is checked by who reads it. Least and most are of
-- numbers, of the bytes of a text, of how many entries a list has; `of` is the kind of these; `words` are those of a
-- choice, with blanks between.
local check = require "jqlua.base.check"

local M = {}

local MOST = 1e10 -- of what has no range of its own

local ENTRIES = {
  job = "job ids", name = "names", worker = "workers", reference = "job ids or indexes",
  secret = "secrets", token = "tokens", text = "texts",
}

local function is_text(value, least, most)
  return type(value) == "string" and #value >= least and #value <= most
end

local function is_word(value, _, _, words)
  return type(value) == "string" and value ~= "" and not value:find(" ", 1, true)
    and (" " .. words .. " "):find(" " .. value .. " ", 1, true) ~= nil
end

-- By kind: the test of a value, what it is in errors, least and most of a field that does not say them. Entries of a
-- list are tested one by one.
local KINDS = {
  name = { check.is_name, check.NAME }, worker = { check.is_name, check.NAME }, zone = { check.is_name, check.NAME },
  queue = { check.is_queue, check.QUEUE }, actor = { check.is_short_name, check.SHORT_NAME },
  job = { check.is_id, check.ID }, lease = { check.is_token, check.TOKEN },
  secret = { check.is_secret, check.SECRET }, url = { check.is_url, check.URL },
  integer = { check.is_integer, "an integer", 0, MOST }, number = { check.is_number, "a number", 0, MOST },
  seconds = { check.is_number, "seconds", 0, MOST }, ms = { check.is_number, "milliseconds", 0, MOST },
  moment = { check.is_number, "Unix seconds", 0, MOST }, moment_ms = { check.is_number, "ms since 1970", 0, 1e15 },
  text = { is_text, "text", 0, math.huge }, message = { is_text, "text", 0, math.huge },
  token = { is_text, "text of 1 to 200 bytes", 1, 200 }, cursor = { is_text, check.CURSOR, 0, 1024 },
  list = { check.is_list, "a list", 0, MOST }, choice = { is_word },
  flag = { function(value)
    return type(value) == "boolean"
  end, "true or false" },
  map = { function(value)
    return type(value) == "table"
  end, "a map" },
  reference = { function(value)
    return check.is_id(value) or check.is_integer(value, 0, MOST)
  end, "a job id, or the index of an earlier job of this call" },
}

--- Powers of ten from 10^9 on are easier to read as such.
local function number_text(number)
  local power = number >= 1e9 and math.floor(math.log10(number) + 0.5)
  return power and number == 10 ^ power and "10^" .. power or string.format("%.15g", number)
end

--- Whether a value is one of a field; entries of a list are not looked at.
---@return boolean
function M.is_valid(value, field)
  local kind = KINDS[field[1]]
  return not kind or kind[1](value, field[2] or kind[3], field[3] or kind[4], field.words)
end

--- What a value of a field is, for errors.
local function expected(field)
  local name, kind = field[1], KINDS[field[1]] or {}
  local range = kind[3] and number_text(field[2] or kind[3]) .. " to " .. number_text(field[3] or kind[4])
  if name == "list" then
    return "a list of " .. range .. " " .. (ENTRIES[field.of] or "values")
  elseif name == "choice" then
    return "one of " .. field.words:gsub(" ", ", ")
  elseif name == "text" and field[3] then
    return "text of " .. range .. " bytes"
  elseif range and kind[1] ~= is_text then
    return kind[2] .. " from " .. range
  end
  return kind[2] or check.NAME
end

--- Refuses the call for a value. What may be part of a secret is not shown.
local function refuse(path, value, field)
  if field[1] == "url" and type(value) == "string" then
    value = value:gsub("://[^/?#]*@", "://***@"):gsub("%?.*", "?***")
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
local function check_required(spec, fields, prefix)
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
  check_required(spec, fields, prefix)
end

return M
