-- Things that have a text in their name, whatever its case.
local budget = require "jqlua.job.budget"
local keys = require "jqlua.base.keys"
local workers = require "jqlua.workers.workers"

local M = {}

local call = redis.call

local MOST = 1500 -- names of a set that are looked at, besides those that begin with the text
local NAME = 0.05 -- units of the budget

--- Members of a set that may have a text in them, those first that begin with it.
---@return string[]
---@return boolean is_all
local function candidates(key, text)
  local found = call("ZRANGEBYLEX", key, "[" .. text, "(" .. text .. "\255", "LIMIT", 0, MOST)
  local others = call("ZRANGEBYLEX", key, "-", "+", "LIMIT", 0, MOST)
  for _, member in ipairs(others) do
    found[#found + 1] = member
  end
  budget.pay(#found * NAME)
  return found, call("ZCARD", key) <= MOST
end

local function name_of_pair(pair)
  local queue, name = pair:match("^(%Z*)%z(.*)$")
  return name ~= "" and name or queue
end

--- {id, name}
local function worker_of(id)
  local record = workers.find(id)
  budget.pay(budget.LOOK)
  return record and { id = id, name = record.n }
end

-- name, set, what a member is the name of or stands for
local function kinds()
  return {
    { "queues", keys.QUEUE_NAMES },
    { "names", keys.STATS_PAIRS, name_of_pair },
    { "workers", keys.WORKER_IDS, worker_of },
    { "constraints", keys.CONSTRAINT_IDS },
    { "schedules", keys.SCHEDULE_IDS },
    { "tags", keys.TAG_NAMES },
    { "groups", keys.FAILED_GROUPS },
  }
end

--- The first hits of a kind, and whether there may be more.
local function hits_of(kind, text, count)
  local wanted, hits, seen = text:lower(), {}, {}
  local members, is_all = candidates(kind[2], text)
  for _, member in ipairs(members) do
    local thing = kind[3] and kind[3](member) or not kind[3] and member
    local shown = type(thing) == "table" and thing.id .. " " .. thing.name or thing
    if shown and not seen[shown] and shown:lower():find(wanted, 1, true) then
      if #hits == count then
        return hits, true
      end
      seen[shown] = true
      hits[#hits + 1] = thing
    end
    if not budget.is_left() then
      return hits, true
    end
  end
  return hits, not is_all
end

---@return string map
function M.encode(text, count)
  local found, more = {}, {}
  for _, kind in ipairs(kinds()) do
    local things, is_cut = hits_of(kind, text, count)
    found[kind[1]] = things
    more[#more + 1] = is_cut and kind[1] or nil
  end
  found.more = more
  return cmsgpack.pack(found)
end

return M
