-- Picking: what a worker asks for, checked, and the jobs it gets.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local check = require "jqlua.base.check"
local glob = require "jqlua.base.glob"
local heads = require "jqlua.queue.heads"
local lanes = require "jqlua.limits.lane_pick"
local attempt = require "jqlua.life.attempt"
local job = require "jqlua.job.record"
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
---@return table? entries {name} or {pattern}
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
      if text ~= "*" and not heads.has_place(text) then
        return nil, "FULL " .. path .. ": more than " .. heads.MOST_PATTERNS .. " different patterns were in use today"
      end
    else
      entries[i] = { name = text }
    end
  end
  return entries
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
local function parse_rare(plan, field, value, path, holder)
  if field == "order" then
    plan.order = value
    return not (value == "priority" or value == "ordered" or value == "round_robin" or value == "shuffled")
      and check.problem(path .. field, "priority, ordered, round_robin or shuffled", value)
  elseif field == "request" then
    plan.request = value
    return not request.is_token(value) and check.problem(path .. field, request.TOKEN, value)
  elseif field == "wait" then
    plan.wait = value
    return M.check_wait(value, path .. field)
  end
  return check.unknown(path:sub(1, -2), field, holder and FIELDS:sub(8) or FIELDS)
end

---@cold
--- Queues that are more than one name; registered workers. These checks read.
---@return string? problem
local function resolve(plan, path)
  local problem
  if not plan.queue then
    if plan.queues == nil then
      return check.problem(path .. "queues", QUEUES, nil)
    end
    plan.entries, problem = M.parse_queues(plan.queues, path .. "queues")
    plan.wanted = type(plan.queues) == "string" and { plan.queues } or plan.queues
    if problem then
      return problem
    elseif not plan.entries[2] and plan.entries[1].name then
      plan.queue = plan.entries[1].name
    end
  end
  if worker.is_id(plan.worker) then
    if not worker.is_registered(plan.worker) then
      return "NOTFOUND worker: " .. plan.worker .. " is not registered, or was dropped as dead"
    end
    plan.is_registered = true
  end
end

--- Checks what can be checked of a pick's spec without reading.
---@param spec table
---@param path string in front of fields in errors, "" or "pick."
---@param holder string? the worker, where it is given elsewhere
---@return table? plan
---@return string? problem
function M.parse(spec, path, holder)
  local plan = { worker = holder, queue = false, count = 1, path = path }
  for field, value in pairs(spec) do
    local problem
    if field == "worker" and not holder then
      problem = not check.is_name(value) and check.problem(path .. field, check.NAME, value)
      plan.worker = value
    elseif field == "queues" then
      plan.queues = value
      plan.queue = check.is_name(value) and not string.find(value, "*", 1, true) and value
    elseif field == "count" then
      problem = not check.is_integer(value, 1, 1000) and check.problem(path .. field, COUNT, value)
      plan.count = value
    else
      problem = parse_rare(plan, field, value, path, holder)
    end
    if problem then
      return nil, problem
    end
  end
  if not plan.worker then
    return nil, check.problem(path .. "worker", check.NAME, nil)
  end
  return plan
end

--- Checks the rest.
---@return string? problem
function M.resolve(plan)
  if not plan.queue or #plan.worker == worker.ID_SIZE then
    return resolve(plan, plan.path)
  end
end

---@cold
--- Pops up to n of a queue's jobs that come before the bound.
local function pop(head, n)
  local key = queue.key(head.queue, "q")
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
    plan.expired = (plan.expired or 0) + 1
    return
  end
  local n = #reply
  reply[n + 1], reply[n + 2] = document, argument
  if plan.request then
    plan.started = plan.started or {}
    plan.started[#plan.started + 1] = of
  end
end

--- How many more jobs the plan's reply may hold.
---@param most? number of those in it and those to come
local function room_for(plan, reply, most)
  return (most or plan.count) - (#reply - plan.place) / 2
end

--- Starts what was popped.
local function start_all(popped, plan, reply)
  local wanted = {}
  for i = 1, #popped, 2 do
    local id = popped[i]
    wanted[i], wanted[i + 1] = keys.JOB .. id, keys.ARGUMENT .. id
  end
  local records = call("MGET", unpack(wanted))
  for i = 1, #popped, 2 do
    local document, of = attempt.start(popped[i], records[i], plan.worker, plan.is_registered)
    append(plan, reply, document, records[i + 1], of)
  end
end

---@cold
--- Starts the head of a queue that has lanes.
local function start_one(head, plan, reply)
  local of = lanes.take(head)
  if of then
    local document = attempt.start_job(of, plan.worker, plan.is_registered)
    append(plan, reply, document, document and call("GET", keys.ARGUMENT .. head.id), of)
  end
end

---@cold
--- Takes the best of several entries until there are enough.
---@param most? number jobs in the reply
---@return boolean? is_more
local function take(entries, plan, reply, most)
  while room_for(plan, reply, most) > 0 do
    if (plan.expired or 0) > M.MOST_EXPIRED then
      return true
    end
    local head, is_more = heads.best(entries)
    if not head then
      return is_more
    end
    if head.place or head.is_single then
      start_one(head, plan, reply)
    else
      local popped = pop(head, room_for(plan, reply, most))
      if not popped[1] then
        return true -- the index and the queue disagree: never loop inside Redis over that
      end
      start_all(popped, plan, reply)
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
  local entries, each = {}, plan.count
  local n = #plan.entries
  local offset = 0
  if plan.order ~= "ordered" then
    local key = keys.TURN .. redis.sha1hex(cmsgpack.pack(plan.wanted)):sub(1, 16)
    local turn = call("INCR", key)
    call("EXPIRE", key, 86400) -- a list that nobody uses any more is forgotten
    if plan.order == "round_robin" then
      offset, each = turn - 1, 1
    else
      offset = key .. turn
    end
  end
  for i = 1, n do
    entries[i] = plan.entries[plan.order == "round_robin" and (offset + i - 1) % n + 1 or i]
  end
  if plan.order == "shuffled" then
    shuffle(entries, offset)
  end
  local before
  repeat
    before = #reply
    for _, entry in ipairs(entries) do
      if take({ entry }, plan, reply, math.min(plan.count, (#reply - plan.place) / 2 + each)) then
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
      reply[n + 1], reply[n + 2] = attempt.told(of), call("GET", keys.ARGUMENT .. remembered[i])
    end
  end
end

---@cold
local function remember(plan)
  local remembered = {}
  for i, of in ipairs(plan.started) do
    remembered[2 * i - 1], remembered[2 * i] = of[job.ID], attempt.token(of)
  end
  request.remember("p", plan.request, remembered)
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
  local head, is_more = heads.best(plan.entries or { { name = plan.queue } })
  return head ~= nil or is_more == true
end

---@cold
--- What a plan of more than plain fields needs before the jobs are chosen.
---@return table? remembered what this request got before
local function prepare(plan)
  if plan.is_registered then
    worker.seen(plan.worker)
    plan.is_quiet = worker.is_quiet(plan.worker)
  end
  local remembered = plan.request and request.recall("p", plan.request)
  if remembered then
    transition.commit()
    return remembered
  end
  if plan.wait and meta.state[meta.SLEEPERS] > 0 then
    sleepers.awake(plan.worker, plan.wait.on)
  end
end

---@cold
--- Jobs of several queues.
---@return boolean? is_more
local function take_from_several(plan, reply)
  if not M.build_patterns(plan.entries) then
    return true
  elseif plan.order == nil or plan.order == "priority" then
    return take(plan.entries, plan, reply)
  end
  return take_in_order(plan, reply)
end

---@cold
--- Ends what prepare began.
local function settle(plan, reply, wakes, is_ready)
  local is_nothing = #reply == plan.place
  if not is_nothing then
    if plan.is_registered then
      worker.took(plan.worker)
    end
    if plan.request then
      remember(plan)
    end
  end
  if wakes then
    sleepers.go_on(plan.wait.on, is_ready)
  elseif plan.wait and is_nothing and reply[plan.place] ~= 0 and not plan.is_quiet then
    sleepers.rest(plan.worker, plan.wait.on, plan.wait.ms, plan.wanted or { plan.queue })
  end
end

--- Carries a plan out. Nothing here fails.
---@param reply table next_ms, document, argument, ... are appended to it
---@param raw string|false|nil the record of the plan's one queue, if it was read already
---@return table reply
function M.run(plan, reply, raw)
  local state = meta.state
  local is_plain = not (plan.is_registered or plan.wait or plan.request)
  local remembered = not is_plain and prepare(plan)
  if remembered then
    repeat_jobs(reply, remembered)
    return reply
  end
  local place = #reply + 1 -- of next_ms
  plan.place = place
  reply[place] = 0
  if raw then
    queue.decode(plan.queue, raw)
  end
  if state[meta.NEXT_DUE] <= state[meta.NOW_MS] then
    transition.commit()
    sweep.run(math.max(SWEEP_STEPS, math.floor(plan.count * STEPS_OF_A_JOB)))
  end
  local is_more
  local owner = plan.queue and queue.load(plan.queue)
  if plan.is_quiet then
    is_more = false
  elseif owner and queue.is_plain(owner) then
    -- The common case: one queue. Its set is all there is to look at.
    while owner[queue.PAUSED] == 0 and room_for(plan, reply) > 0 do
      if plan.expired and plan.expired > M.MOST_EXPIRED then
        is_more = true
        break
      end
      local more = call("ZPOPMIN", queue.key(owner, "q"), room_for(plan, reply))
      if not more[1] then
        break
      end
      start_all(more, plan, reply)
    end
  elseif state[meta.VERSION] > 0 and lanes.is_behind() then
    is_more = true
  elseif owner then
    is_more = take({ { name = plan.queue } }, plan, reply)
  else
    is_more = take_from_several(plan, reply)
  end
  -- Who is to be quiet may have been woken in another's place.
  local wakes = plan.wait and (#reply > place or plan.is_quiet) and state[meta.SLEEPERS] > 0
  local is_ready = wakes and (plan.is_quiet or room_for(plan, reply) == 0) and is_more_ready(plan)
  transition.commit()
  reply[place] = is_more and 0 or meta.next_ms()
  if not is_plain then
    settle(plan, reply, wakes, is_ready)
  end
  return reply
end

return M
