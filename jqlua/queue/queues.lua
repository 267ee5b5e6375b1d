-- A queue's record: whether it is paused, its limit, and lower bounds that keep the common job from paying for
-- indexes: of its due moments (module base.due) and of its best waiting job (its entry in the index of queues).
-- The bound of the best job only moves when something better comes in, or when a pick over many queues looks
-- at the entry and finds that the job has gone (module pick.chooser).
--
-- In a script a queue is a list of the fields below.
local keys = require "jqlua.base.keys"
local memory = require "jqlua.base.memory"
local meta = require "jqlua.base.meta"
local due = require "jqlua.base.due"
local glob = require "jqlua.base.glob"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

M.PAUSED = 1 -- 0 or 1
M.MAX_WAITING = 2 -- 0: no limit
M.DUE_RUNNING = 3
M.DUE_WAITING = 4
M.DUE_ENDED = 5
M.HEAD_PRIORITY = 6 -- meta.NONE: no entry in the index
M.HEAD_ID = 7
M.NAME = 8
M.CHANGED = 9
M.IS_NEW = 10
M.KEYS = 11 -- of its sets, by state, as far as they were needed
M.FLAGS = 12 -- sum of those below
M.VERSION = 13 -- of the set of constraints under which its waiting jobs were placed
M.REOPENED = 14 -- a job of it became ready in this call; or M.BEHIND
M.FREE = 15 -- the version under which no constraint can match jobs whose name is the queue's
local RAW = 16 -- the stored record, or false

M.BEHIND = "behind" -- REOPENED by jobs behind another of their lane

M.LANED = 2 -- has had lanes
M.FAIR = 4 -- is shared fairly, or was and has jobs that are not sorted again
M.UNSORTED = 8 -- its jobs must be sorted again before any is picked
M.MIXED = 16 -- has had jobs of another name than its own
M.INDEXED = 32 -- has had jobs with tags or unique_for, or that failed for good: indexes may hold removed jobs
M.OWN = 64 -- has settings of its own

-- The queue of notifications, for servers (module webhooks.notices). No pattern matches it, since workers could not
-- handle them.
M.WEBHOOKS = "jq.webhooks"

local FORMAT = ">BI4ddddc14I4I4"
local NO_ID = "              "
M.LEAST_ID = "00000000000000"

-- Records this call has read, by name.
local open = {}

---@param name string
---@return table queue a new one if unknown; it is created when it changes
function M.load(name)
  local queue = open[name]
  if queue then
    return queue
  end
  local raw = call("GET", keys.QUEUE .. name)
  queue = keys.KNOWN_QUEUES[name]
  if not raw then
    queue = {
      0, 0, meta.NONE, meta.NONE, meta.NONE, meta.NONE, NO_ID, name, false, true, {},
      0, meta.state[meta.VERSION], false, 0, false,
    }
  elseif not queue or queue[RAW] ~= raw or queue[M.CHANGED] then -- it changed in a call that failed
    local flags, max_waiting, running, waiting, ended, priority, id, version, free = struct.unpack(FORMAT, raw)
    local paused = flags % 2
    queue = memory.keep(keys.KNOWN_QUEUES, name, {
      paused, max_waiting, running, waiting, ended, priority, id, name, false, false, {},
      flags - paused, version, false, free, raw,
    })
  end
  queue[M.REOPENED] = false
  open[name] = queue
  return queue
end

--- The key of the set of a queue's jobs in a state.
---@param state string
function M.key(queue, state)
  local key_by_state = queue[M.KEYS]
  local key = key_by_state[state]
  if not key then
    key = keys.SET .. states.set_of(state) .. ":" .. queue[M.NAME]
    key_by_state[state] = key
  end
  return key
end

--- Records an earlier due time of one kind.
---@param field number DUE_RUNNING, DUE_WAITING or DUE_ENDED
function M.note_due(queue, field, at_ms)
  if at_ms < queue[field] then
    queue[field] = at_ms
    queue[M.CHANGED] = true
    due.note(M.due_member(queue, field), at_ms)
  else
    due.move_timer()
  end
end

--- After a change of settings: recorded due times may be too late.
function M.recheck_due(queue)
  M.note_due(queue, M.DUE_ENDED, due.AT_ONCE)
end

---@return string member of the set of due moments
function M.due_member(queue, field)
  return (field == M.DUE_RUNNING and due.LEASES or field == M.DUE_WAITING and due.WAITING or due.ENDED) .. queue[M.NAME]
end

--- Whether a queue with jobs has entries in the indexes of patterns.
function M.is_listed(queue)
  return queue[M.PAUSED] == 0 and queue[M.NAME] ~= M.WEBHOOKS
end

--- Whether a name or pattern matches a queue.
function M.matches(wanted, name)
  return wanted == name or name ~= M.WEBHOOKS and glob.is_pattern(wanted) and glob.match(wanted, name)
end

local function patterns_of(name)
  local matching = {}
  for _, pattern in ipairs(call("HKEYS", keys.PATTERNS)) do
    if glob.match(pattern, name) then
      matching[#matching + 1] = pattern
    end
  end
  return matching
end

--- An id in indexes: its first digits, which are a lower bound.
---@return string digits 14
function M.bound(id)
  return id:sub(1, #M.LEAST_ID)
end

--- Moves the queue's entry in the indexes it belongs to.
---@param priority number meta.NONE for no entry
function M.set_head(queue, priority, id)
  if not M.is_listed(queue) then
    priority = meta.NONE
  end
  id = id and M.bound(id)
  local name, before = queue[M.NAME], queue[M.HEAD_PRIORITY]
  for _, pattern in ipairs(patterns_of(name)) do
    if before ~= meta.NONE then
      call("ZREM", keys.HEADS .. pattern, queue[M.HEAD_ID] .. name)
    end
    if priority ~= meta.NONE then
      call("ZADD", keys.HEADS .. pattern, priority, id .. name)
    end
  end
  queue[M.HEAD_PRIORITY] = priority
  queue[M.HEAD_ID] = priority ~= meta.NONE and id or NO_ID
  queue[M.CHANGED] = true
end

--- Writes a record that changed.
function M.save(queue)
  queue[RAW] = struct.pack(FORMAT, queue[M.PAUSED] + queue[M.FLAGS], queue[M.MAX_WAITING], queue[M.DUE_RUNNING],
    queue[M.DUE_WAITING], queue[M.DUE_ENDED], queue[M.HEAD_PRIORITY], queue[M.HEAD_ID], queue[M.VERSION],
    queue[M.FREE])
  call("SET", keys.QUEUE .. queue[M.NAME], queue[RAW])
  if queue[M.IS_NEW] then
    call("ZADD", keys.QUEUE_NAMES, "0", queue[M.NAME])
    queue[M.IS_NEW] = false
  end
  queue[M.CHANGED] = false
end

--- Notes that the record was removed: it must not be written again.
function M.note_removal(queue)
  queue[M.CHANGED], queue[RAW] = false, false
end

---@return boolean
function M.has(queue, flag)
  return queue[M.FLAGS] % (flag + flag) >= flag
end

function M.set(queue, flag)
  if not M.has(queue, flag) then
    queue[M.FLAGS] = queue[M.FLAGS] + flag
    queue[M.CHANGED] = true
  end
end

function M.clear(queue, flag)
  if M.has(queue, flag) then
    queue[M.FLAGS] = queue[M.FLAGS] - flag
    queue[M.CHANGED] = true
  end
end

--- Whether its jobs of a name wait in its plain set: no constraint can match them, and it is not shared fairly.
---@param name string
---@return boolean
function M.is_free(queue, name)
  local version = meta.state[meta.VERSION]
  return queue[M.FLAGS] % (2 * M.FAIR) < M.FAIR and (version == 0 or queue[M.FREE] == version and name == queue[M.NAME])
end

--- Whether all its waiting jobs are in its plain set.
function M.is_plain(queue)
  return queue[M.FLAGS] % M.MIXED == 0 and queue[M.VERSION] >= meta.state[meta.ADDED]
end

--- Updates the bound for a new job that may be the queue's best.
function M.note_head(queue, priority, id)
  if M.has(queue, M.FAIR) then
    id = M.LEAST_ID -- ids do not decide which comes next
  end
  local best = queue[M.HEAD_PRIORITY]
  if priority < best or (priority == best and id < queue[M.HEAD_ID]) then
    M.set_head(queue, priority, id)
  end
end

--- Calls what(queue, is_behind) once for each queue in which jobs became ready in this call.
function M.each_reopened(what)
  for _, queue in pairs(open) do
    local reopened = queue[M.REOPENED]
    if reopened then
      queue[M.REOPENED] = false
      what(queue, reopened == M.BEHIND)
    end
  end
end

--- Writes the records that changed.
function M.save_all()
  for _, queue in next, open do
    if queue[M.CHANGED] then
      M.save(queue)
    end
  end
end

---@return boolean
function M.has_jobs(queue)
  local sets = {}
  for state in states.SETS:gmatch(".") do
    sets[#sets + 1] = M.key(queue, state)
  end
  return call("EXISTS", unpack(sets)) > 0
end

--- The number of a queue's jobs that count against max_waiting.
function M.waiting(queue)
  local total = 0
  for state in states.WAITING:gmatch(".") do
    total = total + call("ZCARD", M.key(queue, state))
  end
  return total
end

return M
