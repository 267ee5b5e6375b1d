-- Searches jobs in order, as far as a call's budget goes: those with a tag, those of a group of failures, or all, queue
-- by queue and state by state.
--
-- A cursor is a position, not a member: that of the last job read. So jobs may come and go meanwhile, and every page
-- costs the same.
local budget = require "jqlua.job.budget"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local jobs = require "jqlua.job.jobs"
local members = require "jqlua.queue.members"
local queues = require "jqlua.queue.queues"
local rank = require "jqlua.base.rank"
local states = require "jqlua.job.states"
local merging = require "jqlua.find.merging"
local filter = require "jqlua.find.filter"

local M = {}

local call = redis.call

local CHUNK = 50
-- States in the order of the protocol page. Done jobs whose result is kept come before those without.
local ORDER = { "qw", "s", "b", "r", "t", "k", "d", "e", "c", "n" } -- of states; those of an entry are merged

-- Fields of a position.
local BEGUN_MS = 1 -- when the first step was
local LETTERS = 2 -- an entry of ORDER, or of merging.ORDER; empty: of a tag or a group
local SCORE = 3 -- nil: before the first
local ID = 4
local QUEUE = 5 -- empty: of a tag or a group, or of all queues at once

--- Checks the cursor.
---@return table position
function M.parse(spec, where)
  if (spec.cursor or "") == "" then
    return { meta.state[meta.NOW_MS], "", nil, "", "" }
  end
  local begun_ms, letters, score, id, name = spec.cursor:match("^(%d+):(%l*):([%d.e+-]*):(%x*):(.*)$")
  local is_known = letters == ""
  for _, entry in ipairs(spec.recent and name == "" and merging.ORDER or ORDER) do
    is_known = is_known or entry == letters
  end
  local at_start = score == "" and id == ""
  check.refuse((not begun_ms or not is_known or not at_start and not (tonumber(score) and check.is_id(id))
    or (letters == "") ~= (where.tag ~= nil or where.group ~= nil)
    or (letters == "") ~= (name == "") and not spec.recent
    or name ~= "" and where.queue and where.queue ~= name) and check.problem("cursor", check.CURSOR, spec.cursor))
  return { tonumber(begun_ms), letters, tonumber(score), id, name }
end

local function cursor_of(at)
  return table.concat({
    string.format("%.0f", at[BEGUN_MS]), at[LETTERS], at[SCORE] and string.format("%.17g", at[SCORE]) or "", at[ID],
    at[QUEUE],
  }, ":")
end

--- The next members of the sets of an entry of ORDER: of a queue's, or of one that is named by its key.
local function members_behind(search, entry, queue)
  local at, is_reversed = search.at, search.is_reversed
  local from = at[SCORE] and { at[SCORE], at[ID] }
  if not queue then
    return rank.next(entry, from, CHUNK, is_reversed)
  end
  local found = members.next(queue, entry:sub(1, 1), from, CHUNK, is_reversed)
  if #entry == 1 then
    return found
  end
  for _, member in ipairs(members.next(queue, entry:sub(2), from, CHUNK, is_reversed)) do
    found[#found + 1] = member
  end
  table.sort(found, function(a, b)
    if is_reversed then
      a, b = b, a
    end
    return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2])
  end)
  for i = #found, CHUNK + 1, -1 do
    found[i] = nil
  end
  return found
end

local function read_all(prefix, found)
  local wanted = {}
  for i, member in ipairs(found) do
    wanted[i] = prefix .. member[2]
  end
  return call("MGET", unpack(wanted))
end

--- Reads members of a set and takes those that are selected.
---@return boolean is_over if as many as wanted were taken, or the budget is spent
local function look(search, found)
  local where, at = search.where, search.at
  local raws = read_all(keys.JOB, found)
  for i, member in ipairs(found) do
    search.looked = search.looked + 1
    local is_left = budget.pay(budget.LOOK + budget.of_bytes(raws[i] or ""))
    at[SCORE], at[ID] = member[1], member[2]
    local job = filter.fits_id(where, member[2]) and jobs.from_record(member[2], raws[i])
    if job and search.letters:find(job[jobs.STATE], 1, true) and filter.holds(where, job) then
      search.take(job)
      search.count = search.count - 1
      is_left = search.count > 0 and budget.is_left()
    end
    if not is_left then
      return true
    end
  end
  return false
end

--- Searches the sets of an entry, as of members_behind, from the position on.
---@return boolean is_through whether its end was reached
local function go_through(search, entry, queue)
  while budget.pay(budget.LOOK) do
    local found = members_behind(search, entry, queue)
    if found[1] and look(search, found) then
      return false
    elseif #found < CHUNK then
      return true
    end
  end
  return false
end

local function is_wanted(search, entry)
  return search.letters:find(entry:sub(1, 1), 1, true) ~= nil
end

--- Searches one queue from the position on.
---@return boolean is_through
local function go_through_queue(search, name)
  local queue = queues.load(name)
  local at = search.at
  if at[QUEUE] ~= name then
    at[LETTERS], at[SCORE], at[ID], at[QUEUE] = ORDER[1], nil, "", name
  end
  local all = {}
  for letter in states.SETS:gmatch(".") do
    all[#all + 1] = queues.key(queue, letter)
  end
  budget.pay(budget.STEP)
  if call("EXISTS", unpack(all)) == 0 then
    return true
  end
  local has_begun = false
  for _, entry in ipairs(ORDER) do
    if entry == at[LETTERS] then
      has_begun = true
    elseif has_begun then
      at[LETTERS], at[SCORE], at[ID] = entry, nil, ""
    end
    if has_begun and is_wanted(search, entry) and not go_through(search, entry, queue) then
      return false
    end
  end
  return true
end

--- Searches all queues from the position on.
---@return boolean is_through
local function go_through_queues(search)
  while budget.is_left() do
    local from = search.at[QUEUE]
    local names = call("ZRANGEBYLEX", keys.QUEUE_NAMES, from == "" and "-" or "[" .. from, "+", "LIMIT", 0, CHUNK)
    for _, name in ipairs(names) do
      if not budget.is_left() then
        search.at = { search.at[BEGUN_MS], ORDER[1], nil, "", name }
        return false
      elseif not go_through_queue(search, name) then
        return false
      end
    end
    if #names < CHUNK then
      return true
    end
  end
  return false
end

--- Searches all queues at once from the position on, state by state.
---@return boolean is_through
local function go_through_merged(search, names)
  local at = search.at
  local has_begun = at[LETTERS] == ""
  for _, entry in ipairs(merging.ORDER) do
    if has_begun then
      at[LETTERS], at[SCORE], at[ID] = entry, nil, ""
    end
    has_begun = has_begun or entry == at[LETTERS]
    local from = at[SCORE] and { at[SCORE], at[ID] }
    local sources = has_begun and merging.open(entry, search.letters, names, from)
    while sources do
      local found = merging.next(sources, CHUNK)
      if found[1] and look(search, found) then
        return false
      elseif #found < CHUNK then
        break
      end
    end
  end
  return true
end

--- The next selected jobs.
---@param at table position, as parse gave it
---@param wish table {take: what is done with each, and pays for it; count: how many are wanted, letters?: of the states
--- that matter, is_reversed?, is_recent?: in the order of jqlua/find/merging.lua, where there are not too many queues}
---@return string cursor "" at the end
---@return number looked how many jobs were read
function M.page(where, at, wish)
  local search = {
    where = where, at = at, count = wish.count, is_reversed = wish.is_reversed, take = wish.take, looked = 0,
    letters = wish.letters and where.letters:gsub("[^" .. wish.letters .. "]", "") or where.letters,
  }
  local is_through
  local names = wish.is_recent and at[QUEUE] == "" and not where.tag and not where.group
    and merging.names(where.queue, at[LETTERS] ~= "")
  if search.letters == "" then
    is_through = true
  elseif where.tag then
    is_through = go_through(search, keys.TAGGED .. where.tag)
  elseif where.group then
    is_through = go_through(search, keys.FAILED .. where.group)
  elseif names then
    is_through = go_through_merged(search, names)
  elseif where.queue then
    is_through = go_through_queue(search, where.queue)
  else
    is_through = go_through_queues(search)
  end
  return is_through and "" or cursor_of(search.at), search.looked
end

--- When a search began: it ignores what happened later.
---@return number ms
function M.begun_ms(at)
  return at[BEGUN_MS]
end

return M
