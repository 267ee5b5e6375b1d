-- Pages of a set of names in order: the cursor is the last name seen, so that every page costs the same, and names may
-- come and go meanwhile.
local budget = require "jqlua.job.budget"
local check = require "jqlua.base.check"

local M = {}

local COUNT = 100
local MOST = 1000

--- Checks the fields cursor and count.
---@return string? problem
function M.check(spec)
  if spec.cursor ~= nil and (type(spec.cursor) ~= "string" or #spec.cursor > 255) then
    return check.problem("cursor", "a cursor as the last reply gave it, or empty text", spec.cursor)
  elseif spec.count ~= nil and not check.is_integer(spec.count, 1, MOST) then
    return check.problem("count", "an integer from 1 to " .. MOST, spec.count)
  end
end

local ALL = { { "-", "+" } }

---@param key string zset whose scores are all 0
---@param ranges? table[] {least, greatest} of ZRANGEBYLEX, in order: only names in these
---@return string[] names
---@return string cursor "" at the end
function M.read(key, spec, ranges)
  local count = spec.count or COUNT
  local cursor = spec.cursor or ""
  local names = {}
  for _, range in ipairs(ranges or ALL) do
    local low = range[1]
    if cursor ~= "" and (low == "-" or cursor >= low:sub(2)) then
      low = "(" .. cursor
    end
    local members = redis.call("ZRANGEBYLEX", key, low, range[2], "LIMIT", 0, count - #names)
    for i = 1, #members do
      names[#names + 1] = members[i]
    end
    if #names == count then
      return names, names[count]
    end
  end
  return names, ""
end

--- A page of documents, as far as a call's budget goes.
---@param key string as of read
---@param document fun(name: string): string? nil to leave it out
---@param price? number of one, without its bytes
---@param ranges? table[] as of read
---@return table reply {cursor, document, ...}
function M.documents(key, spec, document, price, ranges)
  local names, cursor = M.read(key, spec, ranges)
  local reply = { cursor }
  for i, name in ipairs(names) do
    local shown = document(name)
    reply[#reply + 1] = shown
    if not budget.pay((price or budget.DOCUMENT) + budget.of_bytes(shown or "")) and i < #names then
      reply[1] = name
      break
    end
  end
  return reply
end

--- Checks a field of a listing's spec that selects by names.
---@param field string
---@param what string
---@param most number
---@return string? problem
local function check_names(spec, field, what, most)
  local names = spec[field]
  if not check.is_list(names, 1, most) then
    return check.problem(field, "a list of 1 to " .. most .. " " .. what, names)
  end
  for i, name in ipairs(names) do
    if not check.is_name(name) then
      return check.problem(field .. "[" .. i - 1 .. "]", check.NAME, name)
    end
  end
  if spec.cursor ~= nil or spec.count ~= nil then
    return "INVALID " .. field .. ": expected either " .. field .. ", or cursor and count, got both"
  end
end

--- The reply of a listing: documents of those that are named, or a page of all.
---@param key string as of read
---@param document fun(name: string): string? nil to leave it out
---@param listing? table {price?, most?, named?, what?}: price as of documents, most documents in a reply (1000), the
--- spec's field that may name some, and what those are
---@return table reply {cursor, document, ...}, or an error
function M.listing(key, spec, document, listing)
  listing = listing or {}
  local most, names = listing.most or MOST, listing.named and spec[listing.named]
  local problem
  if names == nil then
    problem = M.check(spec)
  else
    problem = check_names(spec, listing.named, listing.what, most)
  end
  if problem then
    return redis.error_reply(problem)
  elseif names == nil then
    local wanted = { cursor = spec.cursor, count = math.min(spec.count or COUNT, most) }
    return M.documents(key, wanted, document, listing.price)
  end
  local reply = { "" }
  for _, name in ipairs(names) do
    reply[#reply + 1] = document(name)
  end
  return reply
end

return M
