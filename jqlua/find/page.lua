-- Pages of a set of names in order: the cursor is the last name seen, so that every page costs the same, and names may
-- come and go meanwhile.
local budget = require "jqlua.job.budget"
local fields = require "jqlua.base.fields"
local check = require "jqlua.base.check"
local ordering = require "jqlua.values.ordering"

local M = {}

local COUNT = 100
local MOST = 1000

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
    if cursor ~= "" and (low == "-" or not ordering.is_before(cursor, low:sub(2))) then
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

--- A page from the end of a set, as far as a call's budget goes.
---@param key string zset whose scores are all 0
---@param high string as of ZRANGE BYLEX, as low
---@param count? number
---@param document fun(member: string): string? nil to leave it out
---@return table reply {the last member looked at, "" at the end; document, ...}
function M.newest(key, high, low, count, document)
  local reply = { "" }
  count = count or COUNT
  repeat
    local members = redis.call("ZRANGE", key, high, low, "BYLEX", "REV", "LIMIT", 0, count)
    for _, member in ipairs(members) do
      local shown = document(member)
      reply[#reply + 1] = shown
      if not budget.pay(shown and budget.DOCUMENT + budget.of_bytes(shown) or budget.LOOK) or #reply > count then
        reply[1] = member
        return reply
      end
      high = "(" .. member
    end
  until #members < count
  return reply
end

--- The reply of a listing: documents of those that are named, or a page of all.
---@param key string as of read
---@param document fun(name: string): string? nil to leave it out
---@param listing? table {price?, most?, named?}: price as of documents, most documents in a reply (1000), and the field
--- of the spec that may name one or some
---@return table reply {cursor, document, ...}
function M.listing(key, spec, document, listing)
  listing = listing or {}
  local most, names = listing.most or MOST, listing.named and spec[listing.named]
  if not names then
    local wanted = { cursor = spec.cursor, count = math.min(spec.count or COUNT, most) }
    return M.documents(key, wanted, document, listing.price)
  end
  fields.refuse(spec, "cursor count", "not valid with " .. listing.named)
  local reply = { "" }
  names = type(names) == "string" and { names } or names
  check.refuse(#names > most
    and "INVALID " .. listing.named .. ": expected at most " .. most .. " with so much of each, got " .. #names)
  for _, name in ipairs(names) do
    reply[#reply + 1] = document(name)
  end
  return reply
end

return M
