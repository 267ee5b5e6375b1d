-- Picking: what a worker asks for, checked, and the jobs it gets.
local keys = require "jqlua.keys"
local meta = require "jqlua.meta"
local check = require "jqlua.check"
local glob = require "jqlua.glob"
local heads = require "jqlua.heads"
local attempt = require "jqlua.attempt"
local job = require "jqlua.job"
local queue = require "jqlua.queue"
local request = require "jqlua.request"
local sleepers = require "jqlua.sleepers"
local sweep = require "jqlua.sweep"
local transition = require "jqlua.transition"
local worker = require "jqlua.worker"

local M = {}

local call = redis.call

local FIELDS = "worker queues count order request wait"
local QUEUES = '"*", a name, or a list of 1 to 100 names and patterns'
local SWEEP_STEPS = 100
-- Expired jobs that one pick ends on its way, beyond those of the sweep.
local MOST_EXPIRED = 100

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

--- Checks a pick's spec.
---@param spec table
---@param path string in front of fields in errors, "" or "pick."
---@param holder string? the worker, where it is given elsewhere
---@return table? plan
---@return string? problem
function M.parse(spec, path, holder)
  local plan = { count = 1, order = "priority", expired = 0 }
  for field, value in pairs(spec) do
    local problem
    if field == "worker" and not holder then
      problem = not check.is_name(value) and check.problem(path .. field, check.NAME, value)
      plan.worker = value
    elseif field == "queues" then
      plan.entries, problem = M.parse_queues(value, path .. field)
      plan.wanted = type(value) == "string" and { value } or value
    elseif field == "count" then
      problem = not check.is_integer(value, 1, 1000) and check.problem(path .. field, "an integer from 1 to 1000", value)
      plan.count = value
    elseif field == "order" then
      problem = not (value == "priority" or value == "ordered" or value == "round_robin" or value == "shuffled")
        and check.problem(path .. field, "priority, ordered, round_robin or shuffled", value)
      plan.order = value
    elseif field == "request" then
      problem = not request.is_token(value) and check.problem(path .. field, request.TOKEN, value)
      plan.request = value
    elseif field == "wait" then
      problem = M.check_wait(value, path .. field)
      plan.wait = value
    else
      return nil, check.unknown(path:sub(1, -2), field, holder and FIELDS:sub(8) or FIELDS)
    end
    if problem then
      return nil, problem
    end
  end
  plan.worker = plan.worker or holder
  if not plan.worker then
    return nil, check.problem(path .. "worker", check.NAME, nil)
  end
  if not plan.entries then
    return nil, check.problem(path .. "queues", QUEUES, nil)
  end
  if worker.is_id(plan.worker) then
    if not worker.is_registered(plan.worker) then
      return nil, "NOTFOUND worker: " .. plan.worker .. " is not registered, or was dropped as dead"
    end
    plan.is_registered = true
  end
  return plan
end

--- Pops up to n of a queue's jobs that come before the bound.
local function pop(head, n)
  local key = keys.SET .. "q:" .. head.queue.name
  if not head.bound_priority or head.bound_priority == meta.NONE then
    return call("ZPOPMIN", key, n)
  end
  local waiting = call("ZRANGE", key, 0, n - 1, "WITHSCORES")
  local before = 0
  for i = 1, #waiting, 2 do
    if not heads.is_before(tonumber(waiting[i + 1]), waiting[i], head.bound_priority, head.bound_id) then
      break
    end
    before = before + 1
  end
  return call("ZPOPMIN", key, before)
end

--- Starts what was popped; appends to the reply. Counts those that had expired: they are work, too.
local function start_all(popped, plan, reply)
  for i = 1, #popped, 2 do
    local started = attempt.start(popped[i], plan.worker, plan.is_registered)
    if not started then
      plan.expired = plan.expired + 1
    else
      if plan.request then
        started.id = popped[i]
      end
      reply[#reply + 1] = started
    end
  end
end

---@cold
--- Takes the best of several entries until there are enough.
---@return boolean? is_more
local function take(entries, plan, reply, enough)
  while #reply < enough do
    if plan.expired > MOST_EXPIRED then
      return true
    end
    local head, is_more = heads.best(entries)
    if not head then
      return is_more
    end
    start_all(pop(head, enough - #reply), plan, reply)
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
  local is_more, before
  repeat
    before = #reply
    for _, entry in ipairs(entries) do
      is_more = take({ entry }, plan, reply, math.min(plan.count, #reply + each)) or is_more
    end
  until #reply >= plan.count or #reply == before or each > 1
  return is_more
end

---@cold
--- The jobs that this request got before, as far as their attempts still run.
local function repeated(remembered)
  local reply = { meta.next_ms() }
  for i = 1, #remembered, 2 do
    local of = job.read(remembered[i])
    if of and attempt.runs(of, remembered[i + 1]) then
      reply[#reply + 1] = attempt.document(of)
    end
  end
  return reply
end

---@cold
local function remember(plan, taken)
  local remembered = {}
  for _, started in ipairs(taken) do
    remembered[#remembered + 1] = started.id
    remembered[#remembered + 1] = job.glance(started.id).attempt
  end
  request.remember("p", plan.request, remembered)
end

---@cold
function M.build_patterns(entries)
  for _, entry in ipairs(entries) do
    if entry.pattern and entry.pattern ~= "*" and not heads.build(entry.pattern) then
      return false
    end
  end
  return true
end

---@cold
local function is_more_ready(entries)
  return heads.best(entries) ~= nil
end

--- Carries a plan out. Nothing here fails.
---@return table reply {next_ms, {document, argument}, ...}
function M.run(plan)
  if plan.is_registered then
    worker.seen(plan.worker)
  end
  local remembered = plan.request and request.recall("p", plan.request)
  if remembered then
    transition.commit()
    return repeated(remembered)
  end
  if plan.wait and meta.state.sleepers > 0 then
    sleepers.awake(plan.worker, plan.wait.on)
  end
  if meta.state.next_due <= meta.state.now_ms then
    sweep.run(SWEEP_STEPS)
  end
  local taken = {}
  local entries = plan.entries
  local is_more
  if not entries[2] and entries[1].name then
    -- The common case: one queue. Its set is all there is to look at.
    local owner = queue.load(entries[1].name)
    while owner.paused == 0 and #taken < plan.count do
      if plan.expired > MOST_EXPIRED then
        is_more = true
        break
      end
      local popped = call("ZPOPMIN", keys.SET .. "q:" .. owner.name, plan.count - #taken)
      if not popped[1] then
        break
      end
      start_all(popped, plan, taken)
    end
  elseif not M.build_patterns(entries) then
    is_more = true
  elseif plan.order == "priority" then
    is_more = take(entries, plan, taken, plan.count)
  else
    is_more = take_in_order(plan, taken)
  end
  local wakes = plan.wait and taken[1] and meta.state.sleepers > 0
  local is_ready = wakes and #taken == plan.count and is_more_ready(entries)
  transition.commit()
  if plan.is_registered and taken[1] then
    worker.took(plan.worker)
  end
  if plan.request and taken[1] then
    remember(plan, taken)
  end
  local next_ms = is_more and 0 or meta.next_ms()
  if wakes then
    sleepers.go_on(plan.wait.on, is_ready)
  elseif plan.wait and not taken[1] and next_ms ~= 0 then
    sleepers.rest(plan.worker, plan.wait.on, plan.wait.ms, plan.wanted)
  end
  -- reply: next_ms, then the jobs
  table.insert(taken, 1, next_ms)
  return taken
end

return M
