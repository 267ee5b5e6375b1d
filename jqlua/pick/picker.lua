-- Picking: what a worker asks for, checked, and the jobs it gets.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local glob = require "jqlua.base.glob"
local heads = require "jqlua.queue.heads"
local lanes = require "jqlua.limits.lane_pick"
local lanestart = require "jqlua.limits.lane_start"
local attempt = require "jqlua.life.attempt"
local batch = require "jqlua.base.writes"
local job = require "jqlua.job.record"
local states = require "jqlua.job.states"
local memory = require "jqlua.base.memory"
local queue = require "jqlua.queue.record"
local request = require "jqlua.base.request"
local sleepers = require "jqlua.pick.sleepers"
local sweep = require "jqlua.life.sweep"
local transition = require "jqlua.life.transition"
local worker = require "jqlua.pick.worker"

local M = {}

local call = redis.call

local FIELDS = "worker queues count order request wait"
local COUNT = "an integer from 1 to 1000"
local QUEUES = '"*", a name, or a list of 1 to 100 names and patterns'
-- Who picks many at once finishes as many, and old records have to go as fast as they come.
local SWEEP_STEPS = 100
local STEPS_OF_A_JOB = 0.5
-- Expired jobs that one pick ends on its way, beyond those of the sweep.
M.MOST_EXPIRED = 100

---@cold
---@param value any the field `queues`
---@return table? entries {name} or {pattern}; has_patterns: whether there is one besides *
---@return string? problem
function M.parse_queues(value, path)
  local list = value
  if type(value) == "string" then
    list = { value }
  elseif not check.is_list(value, 1, 100) then
    return nil, check.problem(path, QUEUES, value)
  end
  local entries = {}
  for i, text in ipairs(list) do
    if not check.is_name(text) then
      return nil, check.problem(list == value and path .. "[" .. (i - 1) .. "]" or path, check.NAME, text)
    end
    if glob.is_pattern(text) then
      entries[i] = { pattern = text }
      entries.has_patterns = entries.has_patterns or text ~= "*"
    else
      entries[i] = { name = text }
    end
  end
  return entries
end

---@cold
--- Whether there is a place for the patterns. This reads.
---@return string? problem
function M.check_patterns(entries, path)
  for _, entry in ipairs(entries) do
    if entry.pattern and entry.pattern ~= "*" and not heads.has_place(entry.pattern) then
      return "FULL " .. path .. ": more than " .. heads.MOST_PATTERNS .. " different patterns were in use today"
    end
  end
end

---@cold
---@param wait any the field `wait`
---@return string? problem
function M.check_wait(wait, path)
  if type(wait) ~= "table" then
    return check.problem(path, "a map with on and ms", wait)
  end
  for field in pairs(wait) do
    if field ~= "on" and field ~= "ms" then
      return check.unknown(path, field, "on ms")
    end
  end
  local on = wait.on
  if type(on) ~= "string" or #on == 0 or #on > 64 or string.find(on, "[^%w._-]") then
    return check.problem(path .. ".on", "1 to 64 of A-Z a-z 0-9 . _ -", on)
  end
  if not check.is_number(wait.ms, 1, 60000) then
    return check.problem(path .. ".ms", "milliseconds from 1 to 60000", wait.ms)
  end
end

---@cold
--- The rarer fields.
---@return string? problem
local function parse_rare(wish, field, value, path, holder)
  if field == "order" then
    wish.order = value ~= "priority" and value
    return not (value == "priority" or value == "ordered" or value == "round_robin" or value == "shuffled")
      and check.problem(path .. field, "priority, ordered, round_robin or shuffled", value)
  elseif field == "request" then
    wish.request = value
    return not request.is_token(value) and check.problem(path .. field, request.TOKEN, value)
  elseif field == "wait" then
    wish.wait = value
    return M.check_wait(value, path .. field)
  end
  return check.unknown(path:sub(1, -2), field, holder and FIELDS:sub(8) or FIELDS)
end

--- Checks what can be checked of a pick's spec without reading.
---@param spec table
---@param path string in front of fields in errors, "" or "pick."
---@param holder string? the worker, where it is given elsewhere
---@return table? wish {worker, queue: the only one, or entries and wanted: several; count, order, request, wait}, not
--- to be changed
---@return string? problem
function M.parse(spec, path, holder)
  local wish = {
    worker = holder, queue = false, entries = false, wanted = false, count = 1, order = false, request = false,
    wait = false, path = path,
  }
  for field, value in pairs(spec) do
    local problem
    if field == "worker" and not holder then
      problem = not check.is_name(value) and check.problem(path .. field, check.NAME, value)
      wish.worker = value
    elseif field == "queues" then
      wish.wanted = type(value) == "string" and { value } or value
      wish.entries, problem = M.parse_queues(value, path .. "queues")
    elseif field == "count" then
      problem = not check.is_integer(value, 1, 1000) and check.problem(path .. field, COUNT, value)
      wish.count = value
    else
      problem = parse_rare(wish, field, value, path, holder)
    end
    if problem then
      return nil, problem
    end
  end
  if not wish.worker then
    return nil, check.problem(path .. "worker", check.NAME, nil)
  elseif not wish.entries then
    return nil, check.problem(path .. "queues", QUEUES, nil)
  end
  if not wish.entries[2] and wish.entries[1].name then
    wish.queue = wish.entries[1].name
  end
  return wish
end

---@kept
-- What specs say, by their bytes.
local known = {}

--- As parse, of the bytes of a call's only argument.
---@return table? wish
---@return string? problem
function M.read(blob)
  local wish = known[blob]
  if wish then
    return wish
  end
  local spec = #ARGV == 1 and check.map(blob)
  if not spec then
    return nil, check.not_one_spec()
  end
  local problem
  wish, problem = M.parse(spec, "")
  return wish and memory.keep(known, blob, wish), problem
end

-- What a call notes of its wish: a list of these.
local WISH = 1
local IS_REGISTERED = 2
local IS_QUIET = 3 -- the worker was asked to take no more jobs
local EXPIRED = 4 -- how many jobs ended instead of being started
local STARTED = 5 -- jobs, for requests
local PLACE = 6 -- of next_ms in the reply; jobs stand behind it

--- Checks the rest.
---@return table? plan of this call
---@return string? problem
function M.plan(wish)
  local problem = wish.entries.has_patterns and M.check_patterns(wish.entries, wish.path .. "queues")
  local is_registered = worker.is_id(wish.worker)
  if is_registered and not worker.is_registered(wish.worker) then
    problem = problem or "NOTFOUND worker: " .. wish.worker .. " is not registered, or was dropped as dead"
  end
  if problem then
    return nil, problem
  end
  return { wish, is_registered, false, 0, false, 0 }
end

---@cold
--- Pops up to n of a queue's jobs that come before the bound.
local function pop(head, n)
  local key = queue.key(head.queue, states.QUEUED)
  if head.bound_priority == meta.NONE then
    return call("ZPOPMIN", key, n)
  end
  local waiting = call("ZRANGE", key, 0, n - 1, "WITHSCORES")
  local before = 0
  for i = 1, #waiting, 2 do
    if heads.is_before(head.bound_priority, head.bound_id, tonumber(waiting[i + 1]), waiting[i]) then
      break
    end
    before = before + 1
  end
  return call("ZPOPMIN", key, before)
end

--- Appends a job that was started to the reply. Counts those that had expired: they are work, too.
---@param document? string
local function append(plan, reply, document, argument, of)
  if not document then
    plan[EXPIRED] = plan[EXPIRED] + 1
    return
  end
  local n = #reply
  reply[n + 1], reply[n + 2] = document, argument
  if plan[WISH].request then
    plan[STARTED] = plan[STARTED] or {}
    plan[STARTED][#plan[STARTED] + 1] = of
  end
end

--- How many more jobs the plan's reply may hold.
---@param most? number of those in it and those to come
local function room_for(plan, reply, most)
  return (most or plan[WISH].count) - (#reply - plan[PLACE]) / 2
end

--- Starts what was popped from the queue's plain set.
local function start_all(owner, popped, plan, reply)
  local wanted = { false, false }
  for i = 1, #popped, 2 do
    local id = popped[i]
    wanted[i], wanted[i + 1] = keys.JOB .. id, keys.ARGUMENT .. id
  end
  local records = call("MGET", unpack(wanted))
  local wish, is_registered = plan[WISH], plan[IS_REGISTERED]
  for i = 1, #popped, 2 do
    local id, raw = popped[i], records[i]
    if wish.request and raw then
      local of = job.decode(id, raw)
      append(plan, reply, attempt.start(of, wish.worker, is_registered), records[i + 1], of)
    else
      append(plan, reply, raw and attempt.start_popped(owner, id, wanted[i], raw, wish.worker, is_registered),
        records[i + 1])
    end
  end
end

---@cold
--- Starts the head of a queue that has lanes, and those of its lane behind it that come next.
local function start_lane(head, most, plan, reply)
  local started, wanted = lanestart.take(head, most), {}
  for i, of in ipairs(started) do
    wanted[i] = keys.ARGUMENT .. of[job.ID]
  end
  local arguments = started[1] and call("MGET", unpack(wanted))
  for i, of in ipairs(started) do
    append(plan, reply, attempt.start(of, plan[WISH].worker, plan[IS_REGISTERED]), arguments[i], of)
  end
end

---@cold
--- Takes the best of several entries until there are enough.
---@param most? number jobs in the reply
---@return boolean? is_more
local function take(entries, plan, reply, most)
  while room_for(plan, reply, most) > 0 do
    if plan[EXPIRED] > M.MOST_EXPIRED then
      return true
    end
    local head, is_more = heads.best(entries)
    if not head then
      return is_more
    end
    if head.place or head.is_single then
      start_lane(head, room_for(plan, reply, most), plan, reply)
    else
      local popped = pop(head, room_for(plan, reply, most))
      if not popped[1] then
        return true -- the index and the queue disagree: never loop inside Redis over that
      end
      start_all(head.queue, popped, plan, reply)
    end
  end
end

local function shuffle(entries, seed)
  for i = #entries, 2, -1 do
    seed = redis.sha1hex(seed)
    local j = tonumber(seed:sub(1, 8), 16) % i + 1
    entries[i], entries[j] = entries[j], entries[i]
  end
end

---@cold
--- The other orders: entry by entry.
---@return boolean? is_more
local function take_in_order(plan, reply)
  local wish = plan[WISH]
  local entries, each = {}, wish.count
  local n = #wish.entries
  local offset = 0
  if wish.order ~= "ordered" then
    local key = keys.TURN .. redis.sha1hex(cmsgpack.pack(wish.wanted)):sub(1, 16)
    local turn = call("INCR", key)
    call("EXPIRE", key, 86400) -- a list that nobody uses any more is forgotten
    if wish.order == "round_robin" then
      offset, each = turn - 1, 1
    else
      offset = key .. turn
    end
  end
  for i = 1, n do
    entries[i] = wish.entries[wish.order == "round_robin" and (offset + i - 1) % n + 1 or i]
  end
  if wish.order == "shuffled" then
    shuffle(entries, offset)
  end
  local before
  repeat
    before = #reply
    for _, entry in ipairs(entries) do
      if take({ entry }, plan, reply, math.min(wish.count, (#reply - plan[PLACE]) / 2 + each)) then
        return true -- what is not known yet of this entry may come before the next one's
      end
    end
  until room_for(plan, reply) == 0 or #reply == before or each > 1
  return false
end

---@cold
--- The jobs that this request got before, as far as their attempts still run.
local function repeat_jobs(reply, remembered)
  reply[#reply + 1] = meta.next_ms()
  for i = 1, #remembered, 2 do
    local of = job.read(remembered[i])
    local token = remembered[i + 1]
    if type(token) == "number" then
      token = token .. "-" -- schema 3 knew nothing more of an attempt
    end
    if of and attempt.runs(of, token) then
      local n = #reply
      reply[n + 1], reply[n + 2] = job.document(of), call("GET", keys.ARGUMENT .. remembered[i])
    end
  end
end

---@cold
local function remember(plan)
  local remembered = {}
  for i, of in ipairs(plan[STARTED]) do
    remembered[2 * i - 1], remembered[2 * i] = of[job.ID], job.token(of)
  end
  request.remember("p", plan[WISH].request, remembered)
end

---@cold
---@return boolean complete
function M.build_patterns(entries)
  for _, entry in ipairs(entries) do
    if entry.pattern and entry.pattern ~= "*" and not heads.build(entry.pattern) then
      return false
    end
  end
  return true
end

---@cold
--- Whether more is ready, or may be: then the looks allowed were used up.
local function is_more_ready(plan)
  local head, is_more = heads.best(plan[WISH].entries)
  return head ~= nil or is_more == true
end

---@cold
--- What a plan of more than plain fields needs before the jobs are chosen.
---@return table? remembered what this request got before
local function prepare(plan)
  local wish = plan[WISH]
  if plan[IS_REGISTERED] then
    worker.seen(wish.worker)
    plan[IS_QUIET] = worker.is_quiet(wish.worker)
  end
  local remembered = wish.request and request.recall("p", wish.request)
  if remembered then
    transition.commit()
    return remembered
  end
  if wish.wait and meta.state[meta.SLEEPERS] > 0 then
    sleepers.awake(wish.worker, wish.wait.on)
  end
end

---@cold
--- Jobs of several queues.
---@return boolean? is_more
local function take_from_several(plan, reply)
  local wish = plan[WISH]
  if not M.build_patterns(wish.entries) then
    return true
  elseif not wish.order then
    return take(wish.entries, plan, reply)
  end
  return take_in_order(plan, reply)
end

---@cold
--- Ends what prepare began.
local function settle(plan, reply, wakes, is_ready)
  local wish = plan[WISH]
  local is_nothing = #reply == plan[PLACE]
  if not is_nothing then
    if plan[IS_REGISTERED] then
      worker.took(wish.worker)
    end
    if wish.request then
      remember(plan)
    end
  end
  if wakes then
    sleepers.go_on(wish.wait.on, is_ready)
  elseif wish.wait and is_nothing and reply[plan[PLACE]] ~= 0 and not plan[IS_QUIET] then
    sleepers.rest(wish.worker, wish.wait.on, wish.wait.ms, wish.wanted)
  end
end

--- Carries a plan out. Nothing here fails.
---@param reply table next_ms, document, argument, ... are appended to it
---@param raw string|false|nil the record of the plan's one queue, if it was read already
---@return table reply
function M.run(plan, reply, raw)
  local wish = plan[WISH]
  local state = meta.state
  local is_plain = not (plan[IS_REGISTERED] or wish.wait or wish.request)
  local remembered = not is_plain and prepare(plan)
  if remembered then
    repeat_jobs(reply, remembered)
    return reply
  end
  local place = #reply + 1 -- of next_ms
  plan[PLACE] = place
  reply[place] = 0
  if raw and wish.queue then
    queue.decode(wish.queue, raw)
  end
  local owner = wish.queue and queue.load(wish.queue)
  local is_due = state[meta.NEXT_DUE] <= state[meta.NOW_MS]
  if is_due or not owner or batch.adds[queue.key(owner, states.QUEUED)]
    or not queue.is_plain(owner) and not lanes.sees_all(owner) then
    transition.commit() -- what this call did before has to be seen
  end
  if is_due then
    sweep.run(math.max(SWEEP_STEPS, math.floor(wish.count * STEPS_OF_A_JOB)))
  end
  local is_more
  if plan[IS_QUIET] then
    is_more = false
  elseif owner and queue.is_plain(owner) then
    -- The common case: one queue. Its set is all there is to look at.
    local left = owner[queue.PAUSED] == 0 and wish.count or 0
    while left > 0 do
      if plan[EXPIRED] > M.MOST_EXPIRED then
        is_more = true
        break
      end
      local more = call("ZPOPMIN", queue.key(owner, states.QUEUED), left)
      if not more[1] then
        break
      end
      start_all(owner, more, plan, reply)
      left = room_for(plan, reply)
    end
  elseif state[meta.VERSION] > 0 and lanes.is_behind() then
    is_more = true
  elseif owner then
    is_more = take(wish.entries, plan, reply)
  else
    is_more = take_from_several(plan, reply)
  end
  -- Who is to be quiet may have been woken in another's place.
  local wakes = wish.wait and (#reply > place or plan[IS_QUIET]) and state[meta.SLEEPERS] > 0
  local is_ready = wakes and (plan[IS_QUIET] or room_for(plan, reply) == 0) and is_more_ready(plan)
  transition.commit()
  reply[place] = is_more and 0 or meta.next_ms()
  if not is_plain then
    settle(plan, reply, wakes, is_ready)
  end
  return reply
end

return M
