-- Searches jobs in order, as far as a call's budget goes: those with a tag, those of a group of failures, or all, queue
-- by queue and state by state.
--
-- A cursor is a position, not a member: that of the last job read. So jobs may come and go meanwhile, and every page
-- costs the same.
local arguments = require "jqlua.base.arguments"
local budget = require "jqlua.job.budget"
local fields = require "jqlua.base.fields"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local jobs = require "jqlua.job.jobs"
local members = require "jqlua.queue.members"
local queues = require "jqlua.queue.queues"
local rank = require "jqlua.base.rank"
local filter = require "jqlua.find.filter"

local M = {}

local call = redis.call

local CHUNK = 50
local COUNT = 100
-- States in the order of the protocol page. Done jobs whose result is kept come before those without. Those of an entry
-- are merged.
local ORDER = { "qw", "s", "b", "r", "t", "k", "d", "e", "c", "n" }

--- Checks the cursor.
---@return table position {begun_ms: when the first step was; queue, letters: an entry of ORDER, both empty: of a tag or
--- a group; score, id: of the last job read, nil and empty: before the first}
function M.parse(spec, where)
  if (spec.cursor or "") == "" then
    return { begun_ms = meta.state[meta.NOW_MS], letters = "", id = "", queue = "" }
  end
  local begun_ms, letters, score, id, name = spec.cursor:match("^(%d+):(%l*):([%d.e+-]*):(%x*):(.*)$")
  local is_known = letters == ""
  for _, entry in ipairs(ORDER) do
    is_known = is_known or entry == letters
  end
  local at_start = score == "" and id == ""
  check.refuse((not begun_ms or not is_known or not at_start and not (tonumber(score) and check.is_id(id))
    or (letters == "") ~= (where.tag ~= nil or where.group ~= nil) or (letters == "") ~= (name == "")
    or name ~= "" and where.queue and where.queue ~= name) and check.problem("cursor", check.CURSOR, spec.cursor))
  return { begun_ms = tonumber(begun_ms), letters = letters, score = tonumber(score), id = id, queue = name }
end

local function cursor_of(at)
  return table.concat({
    string.format("%.0f", at.begun_ms), at.letters, at.score and string.format("%.17g", at.score) or "", at.id,
    at.queue,
  }, ":")
end

local function begin(at, queue, letters)
  at.queue, at.letters, at.score, at.id = queue, letters, nil, ""
end

--- The next members of the sets of an entry of ORDER: of a queue's, or of one that is named by its key.
local function members_behind(search, entry, queue)
  local at, is_reversed = search.at, search.is_reversed
  local from = at.score and { at.score, at.id }
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

--- Reads members of a set and takes those that are selected.
---@return boolean is_over if as many as wanted were taken, or the budget is spent
local function look(search, found)
  local where, at = search.where, search.at
  local wanted = {}
  for i, member in ipairs(found) do
    wanted[i] = keys.JOB .. member[2]
  end
  local raws = call("MGET", unpack(wanted))
  for i, member in ipairs(found) do
    search.looked = search.looked + 1
    local is_left = budget.pay(budget.LOOK + budget.of_bytes(raws[i] or ""))
    at.score, at.id = member[1], member[2]
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

--- Searches one queue from the position on.
---@return boolean is_through
local function go_through_queue(search, name)
  local queue = queues.load(name)
  local at = search.at
  if at.queue ~= name then
    begin(at, name, ORDER[1])
  end
  budget.pay(budget.STEP)
  if not queues.has_jobs(queue) then
    return true
  end
  local has_begun = false
  for _, entry in ipairs(ORDER) do
    if has_begun then
      begin(at, name, entry)
    end
    has_begun = has_begun or entry == at.letters
    local is_wanted = search.letters:find(entry:sub(1, 1), 1, true)
    if has_begun and is_wanted and not go_through(search, entry, queue) then
      return false
    end
  end
  return true
end

--- Searches all queues from the position on.
---@return boolean is_through
local function go_through_queues(search)
  while budget.is_left() do
    local from = search.at.queue
    local names = call("ZRANGEBYLEX", keys.QUEUE_NAMES, from == "" and "-" or "[" .. from, "+", "LIMIT", 0, CHUNK)
    for _, name in ipairs(names) do
      if not budget.is_left() then
        begin(search.at, name, ORDER[1])
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

--- The next selected jobs.
---@param at table position, as parse gave it
---@param wish table {take: what is done with each, and pays for it; count: how many are wanted, letters?: of the states
--- that matter, is_reversed?}
---@return string cursor "" at the end
---@return number looked how many jobs were read
function M.page(where, at, wish)
  local search = {
    where = where, at = at, count = wish.count, is_reversed = wish.is_reversed, take = wish.take, looked = 0,
    letters = wish.letters and where.letters:gsub("[^" .. wish.letters .. "]", "") or where.letters,
  }
  local is_through
  if search.letters == "" then
    is_through = true
  elseif where.tag or where.group then
    is_through = go_through(search, where.tag and keys.TAGGED .. where.tag or keys.FAILED .. where.group)
  elseif where.queue then
    is_through = go_through_queue(search, where.queue)
  else
    is_through = go_through_queues(search)
  end
  return is_through and "" or cursor_of(search.at), search.looked
end

--- Opens the namespace of a call whose argument is a job's id.
---@return table job
function M.named()
  meta.open()
  local id = ARGV[1]
  check.refuse((#ARGV ~= 1 or not check.is_id(id)) and check.problem("id", check.ID, id))
  local job = jobs.read(id)
  check.refuse(not job and check.missing("id", "job", id))
  return job
end

-- The jobs that a call changes: by ids, or the next of those that `where` selects -------------------------------------

--- Opens the namespace and reads the spec of an operator who changes jobs.
---@param known table<string, table> its fields
---@return table spec
---@return table selection {ids} or {where, at, count, begun_ms}
function M.selection(known)
  local spec = arguments.spec(known)
  if not spec.where then
    fields.refuse(spec, "cursor count", "only valid with where")
    check.refuse(not spec.ids and check.problem("ids", "job ids, or where", nil))
    return spec, { ids = spec.ids }
  end
  check.refuse(spec.ids and "INVALID ids: expected either ids or where, got both")
  local where = filter.parse(spec.where)
  local at = M.parse(spec, where)
  return spec, { where = where, at = at, count = spec.count or COUNT, begun_ms = at.begun_ms }
end

--- Changes each selected job.
---@param letters string states that `where` selects from
---@param change fun(job: table): string, boolean? answer for the job, and whether it changed
---@return table reply an answer for each id; or {cursor, changed}
---@return number changed
function M.each(selection, letters, change)
  local changed = 0
  if selection.ids then
    local answers = {}
    for i, id in ipairs(selection.ids) do
      local job, is_changed = jobs.read(id), nil
      answers[i] = "NOTFOUND"
      if job then
        answers[i], is_changed = change(job)
      end
      changed = changed + (is_changed and 1 or 0)
    end
    return answers, changed
  end
  local cursor = M.page(selection.where, selection.at, {
    count = selection.count, letters = letters,
    take = function(job)
      local price = budget.of_job(job)
      local _, is_changed = change(job)
      budget.pay(2 * math.max(price, budget.of_job(job)))
      if is_changed then
        changed = changed + 1
      end
    end,
  })
  return { cursor, changed }, changed
end

return M
