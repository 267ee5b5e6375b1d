-- Paths to a value of a job, used by matchers and `by`.
local msgpack = require "jqlua.base.msgpack"
local check = require "jqlua.base.check"

local M = {}

local MOST_SEGMENTS = 32
local MOST_BYTES = 1024

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

--- Checks a path, as `by` has it.
---@param path string of the field, for errors
---@param is_inside? boolean whether it must lead into the argument
---@return string|table compiled name, queue, priority, argument, or the segments
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
  return segments
end

--- Looks up the value a path leads to.
---@param path table|string|false segments, the only one, or none: the argument itself
---@param facts table of a job, with its argument; what was read of it is kept there
---@return any value nil where it leads nowhere
function M.look(path, facts)
  if facts.seen ~= facts.argument then
    local _, value = msgpack.read(facts.argument)
    facts.seen, facts.decoded = facts.argument, value
  end
  local value = facts.decoded
  for depth = 1, path and (type(path) == "string" and 1 or #path) or 0 do
    local segment = type(path) == "string" and path or path[depth]
    if type(value) ~= "table" then
      return nil
    end
    local inner = value[segment]
    if inner == nil and (segment == "0" or string.find(segment, "^[1-9]%d*$")) then
      inner = value[tonumber(segment) + 1]
    end
    value = inner
  end
  return value
end

--- The value a path leads to, as it names keys.
---@param compiled string|table path
---@param facts table as for a matcher's test
---@return string? text "n" where the path leads nowhere; nil when the fact is unknown
function M.value(compiled, facts)
  if compiled == "priority" then
    return facts.priority and msgpack.text(facts.priority)
  elseif compiled == "name" or compiled == "queue" then
    return facts[compiled] and "s" .. facts[compiled]
  elseif facts.argument then
    return msgpack.text(M.look(compiled ~= "argument" and compiled, facts))
  end
end

return M
