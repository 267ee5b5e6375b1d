-- Paths to a value of a job, used by matchers and `by`.
local msgpack = require "jqlua.values.msgpack"
local check = require "jqlua.base.check"

local M = {}

local seek = string.find

local MOST_SEGMENTS = 32
local MOST_BYTES = 1024
-- Larger arguments are not decoded: the tables may take many times their size.
local MOST_DECODED_BYTES = 16384

--- Splits a path into the argument: `argument.to.country`. `\.` is a dot in a key, `\\` a backslash.
---@param text string that begins with "argument."
---@return string[]? segments 1 to 32
---@return string? expected if it is invalid
function M.split(text)
  if #text > MOST_BYTES then
    return nil, "a path of at most " .. MOST_BYTES .. " bytes"
  end
  local segments, segment = {}, ""
  -- Text without dots and backslashes, then one of these, an escape, or the end.
  for plain, mark in text:sub(10):gmatch("([^.\\]*)(\\?.?)") do
    segment = segment .. plain
    if mark == "\\." or mark == "\\\\" then
      segment = segment .. mark:sub(2)
    elseif mark == "." or mark == "" then
      if segment == "" then
        return nil, "a path without empty segments"
      end
      segments[#segments + 1], segment = segment, ""
      if mark == "" then
        break
      end
    else
      return nil, "a path in which \\ stands only before a dot or another \\"
    end
  end
  if #segments > MOST_SEGMENTS then
    return nil, "a path of at most " .. MOST_SEGMENTS .. " segments"
  end
  return segments
end

--- Compiles a path into the argument.
---@param segments string[]
---@return table segments, after `false` if one of them may be an integer
function M.compile(segments)
  for _, segment in ipairs(segments) do
    if segment:find("^%-?%d+$") then
      return { false, unpack(segments) }
    end
  end
  return segments
end

--- Checks a path, as `by` has it.
---@param path string of the field, for errors
---@param is_inside? boolean whether it must lead into the argument
---@return string|table compiled name, queue, priority, argument, or the segments, compiled
function M.parse(text, path, is_inside)
  local is_fact = text == "name" or text == "queue" or text == "priority"
  if text == "argument" or is_fact and not is_inside then
    return text
  elseif type(text) ~= "string" or text:sub(1, 9) ~= "argument." then
    local expected = is_inside and "a path into the argument: argument or argument.<path>"
      or "a path: name, queue, priority, argument or argument.<path>"
    check.refuse(check.problem(path, expected, text))
  end
  local segments, expected = M.split(text)
  check.refuse(not segments and check.problem(path, expected, text))
  return M.compile(segments)
end

-- Looking paths up ---------------------------------------------------------------------------------------------------

-- cmsgpack reads a whole argument in less time than a walk in Lua takes to one value. But it refuses bin and ext; a key
-- with nil it does not show; and it does not tell very large integers from negative ones, nor integers from floats as
-- keys. What it shows is believed where none of this can be; else the argument is walked over. Of a key that is there
-- twice, either may count.

--- Decodes a job's argument. The result is cached in facts.
local function open(facts)
  local argument = facts.argument
  local is_read, rest, value = false, nil, nil
  -- It would accept no bytes.
  if #argument > 0 and #argument <= MOST_DECODED_BYTES then
    is_read, rest, value = pcall(cmsgpack.unpack_one, argument)
  end
  facts.seen = argument
  if is_read and rest == -1 then
    facts.is_whole, facts.decoded, facts.places = true, type(value) == "table" and value or nil, nil
  else
    facts.places = msgpack.index(argument)
    facts.is_whole, facts.decoded = facts.places ~= nil, nil
  end
end

--- The position of a path's value in a decoded argument.
local function place(path, facts)
  if not facts.is_whole then
    return nil
  elseif not path then
    return 1
  elseif type(path) == "string" then
    path = { path }
  elseif not path[1] then
    path = { unpack(path, 2) }
  end
  facts.places = facts.places or msgpack.index(facts.argument)
  return msgpack.find(facts.argument, path, facts.places)
end

--- Looks up the value a path leads to.
---@param path table|string|false compiled
---@param facts table of a job, with its argument
---@return boolean is_there
---@return number|string|nil scalar as jqlua/values/msgpack.lua has them; nil for what equals nothing
function M.look(path, facts)
  local argument = facts.argument
  if facts.seen ~= argument then
    open(facts)
  end
  local is_text = type(path) == "string"
  local value = (is_text or path and path[1]) and facts.decoded
  local depth = 1
  while value do
    local segment = is_text and path or path[depth]
    if not seek(argument, segment, 1, true) then
      return false, nil
    end
    value = value[segment]
    local kind = type(value)
    if not is_text and depth < #path then
      if kind ~= "table" and kind ~= "nil" then
        return false, nil
      end
      depth = depth + 1
    elseif kind == "string" then
      return true, "s" .. value
    elseif kind == "number" then
      if value >= 0 and value < msgpack.EXACT
        or value < 0 and value > -msgpack.EXACT and not seek(argument, "\207", 1, true) then
        return true, value
      end
      break
    elseif kind == "boolean" then
      return true, value and "t" or "f"
    elseif kind == "table" then
      return true, nil
    end
  end
  local pos = place(path, facts)
  if pos then
    return true, msgpack.scalar(argument, pos)
  end
  return not path, nil
end

--- The value a path leads to.
---@param compiled string|table path
---@param facts table as for a matcher's test
---@return string? text canonical; "n" where the path leads nowhere, "m" and the bytes of a map or array (or of an
--- argument that is not one value), "dnan" for NaN; nil when the fact is unknown
function M.value(compiled, facts)
  if compiled == "priority" then
    return facts.priority and msgpack.text(facts.priority)
  elseif compiled == "name" or compiled == "queue" then
    return facts[compiled] and "s" .. facts[compiled]
  elseif not facts.argument then
    return nil
  end
  local path = compiled ~= "argument" and compiled
  local is_there, scalar = M.look(path, facts)
  if not is_there then
    return "n"
  elseif scalar then
    return msgpack.text(scalar)
  end
  local pos = place(path, facts)
  if not pos then
    return "m" .. facts.argument
  end
  return msgpack.open(facts.argument, pos) and "m" .. msgpack.raw(facts.argument, pos) or "dnan"
end

return M
