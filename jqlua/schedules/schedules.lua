-- Schedules: recurring jobs. The due set has a schedule's exact next time; a sweep at or after it creates the jobs and
-- moves it on, in one step, so that no time is used twice. Times that passed at once make one job, for the first.
local documents = require "jqlua.values.documents"
local creation = require "jqlua.life.creation"
local budget = require "jqlua.job.budget"
local check = require "jqlua.base.check"
local due = require "jqlua.base.due"
local fields = require "jqlua.base.fields"
local jobs = require "jqlua.job.jobs"
local jobspec = require "jqlua.job.jobspec"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local cron = require "jqlua.schedules.cron"
local zones = require "jqlua.schedules.zones"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

-- Ids of so many of its last jobs are kept.
local MOST_RUNS = 20
-- Without catching up, times older than this are skipped.
local MISSED_MS = 60000
-- What it costs to find a time, and as much again for each year until then.
local MOMENT = 1
local YEAR_MS = 366 * 86400000
local NIL = "\192" -- packed: what stands where there is no argument

--- What says when.
local function check_when(spec)
  check.refuse(not spec.every and not spec.cron and "INVALID every: expected every or cron, got neither")
  check.refuse(spec.every and spec.cron and "INVALID cron: expected either every or cron, got both")
  if spec.every then
    return fields.refuse(spec, "tz timezone", "only valid with cron")
  end
  local parsed, problem = cron.parse(spec.cron)
  check.refuse(not parsed and "INVALID cron: " .. (problem or ""))
  check.refuse(spec.timezone and not spec.tz and "INVALID tz: expected the rule of the timezone, got nothing")
  parsed, problem = zones.parse(spec.tz or zones.UTC)
  check.refuse(not parsed and "INVALID tz: " .. (problem or ""))
end

--- What the call changes of a schedule that is there. Refuses the call if its arguments are wrong.
---@param spec table the call's
---@return string? change run or paused; nil: it sets a schedule
function M.check(spec)
  local change = spec.run ~= nil and "run"
    or spec.paused ~= nil and not (spec.job or spec.every or spec.cron) and "paused" or nil
  if change then
    for name in pairs(spec) do
      check.refuse(name ~= "id" and name ~= change and name ~= "actor"
        and "INVALID " .. name .. ": not valid with " .. change)
    end
    check.refuse(spec.run == false and check.problem("run", "true", spec.run))
    check.refuse((ARGV[2] or NIL) ~= NIL and "INVALID argument: not valid with " .. change)
    return change
  end
  check.refuse(#ARGV ~= 2 and "INVALID arguments: expected a spec and an argument, got " .. #ARGV)
  check.refuse(ARGV[2] == "" and "INVALID argument: expected one MessagePack value, got no bytes")
  check_when(spec)
  local job = spec.job
  check.refuse(type(job) ~= "table" and check.problem("job", "a map, as enqueue takes it", job))
  for _, field in ipairs({ "run_at", "depends" }) do
    check.refuse(job[field] ~= nil and "INVALID job." .. field .. ": not valid for the job of a schedule")
  end
  jobspec.check(job, 0)
  if job.headers and not next(job.headers) then
    job.headers = nil -- like a job's; it would be shown as an empty list
  end
end

--- The times of a schedule: with `every`, multiples of it since 1970. Those of cron are paid for.
---@param spec table checked
---@return fun(after_ms: number): number next the first time after another
local function times(spec)
  if spec.every then
    local every_ms = math.floor(spec.every * 1000 + 0.5)
    return function(after_ms)
      return (math.floor(after_ms / every_ms) + 1) * every_ms
    end
  end
  local parsed, zone = cron.parse(spec.cron), zones.parse(spec.tz or zones.UTC)
  return function(after_ms)
    local at_ms = cron.next(parsed, after_ms, zone)
    budget.pay(MOMENT + (at_ms - after_ms) / YEAR_MS)
    return at_ms
  end
end

---@return table? schedule {s fields as given, a argument, m made, n next_ms, l last_ms, i last_id, r ids of last jobs}
function M.load(id)
  local raw = call("HGET", keys.SCHEDULES, id)
  return raw and cmsgpack.unpack(raw) or nil
end

--- Writes the record and the due time.
local function save(schedule)
  local id = schedule.s.id
  call("HSET", keys.SCHEDULES, id, cmsgpack.pack(schedule))
  due.set(due.SCHEDULE .. id, schedule.n or meta.NONE)
end

--- Like load; refuses the call if there is none.
function M.existing(id)
  local schedule = M.load(id)
  check.refuse(not schedule and check.missing("id", "schedule", id))
  return schedule
end

function M.delete(id)
  call("HDEL", keys.SCHEDULES, id)
  call("ZREM", keys.SCHEDULE_IDS, id)
  due.set(due.SCHEDULE .. id, meta.NONE)
end

--- Creates a schedule, or replaces it.
---@param spec table checked
---@param argument string
---@return table schedule
function M.put(spec, argument)
  local old = M.load(spec.id)
  local schedule = { s = spec, a = argument, m = 0 }
  if old then
    schedule.m, schedule.l, schedule.i, schedule.r = old.m, old.l, old.i, old.r
    if spec.declared and spec.paused == nil then
      spec.paused = old.s.paused -- another declaration by a program does not resume it
    end
    spec.declared = spec.declared or old.s.declared
  end
  if not spec.paused then
    local is_as_before = old and old.s.every == spec.every and old.s.cron == spec.cron and old.s.tz == spec.tz
    schedule.n = is_as_before and old.n or times(spec)(meta.state[meta.NOW_MS])
  end
  call("ZADD", keys.SCHEDULE_IDS, 0, spec.id)
  save(schedule)
  if schedule.n then
    due.note(due.SCHEDULE .. spec.id, schedule.n) -- it may be earlier than sleepers were told
  end
  return schedule
end

--- Pauses a schedule, or has it go on.
---@return table schedule
function M.pause(id, paused)
  local schedule = M.existing(id)
  schedule.s.paused = paused
  return M.put(schedule.s, schedule.a)
end

---@param at_ms number
---@param is_beside boolean whether it is not one of its times
---@return string? id nil if its queue has no room
---@return number? created 0 or 1
local function create(schedule, at_ms, is_beside)
  local new = jobspec.new(schedule.s.job, true)
  if not creation.has_room(new) then
    return nil
  end
  local options = jobs.copy_options(new)
  options.schedule, options.schedule_ms = schedule.s.id, at_ms
  jobs.set_options(new, options)
  local id, created = unpack(creation.create_all({ new }, { schedule.a }, 1, {}))
  if created == 1 then
    schedule.r = schedule.r or {}
    schedule.r[#schedule.r + 1] = id
    if #schedule.r > MOST_RUNS then
      table.remove(schedule.r, 1)
    end
    if not is_beside then
      schedule.m, schedule.l, schedule.i = schedule.m + 1, at_ms, id
    end
  end
  return id, created
end

--- Creates a job at once, beside the scheduled ones.
---@return table reply {job id, created}
function M.run_now(schedule_id)
  local schedule = M.existing(schedule_id)
  local id, created = create(schedule, meta.state[meta.NOW_MS], true)
  local job = schedule.s.job
  check.refuse(not id and "FULL job.queue: " .. check.show(job.queue or job.name) .. " has reached max_waiting")
  if created == 1 then
    save(schedule)
  end
  return { id, created }
end

--- Its last jobs, the latest first, with their states as far as still known.
---@param most number
---@return table[]
local function runs_of(schedule, most)
  local list, ids = {}, schedule.r or {}
  for at = #ids, math.max(1, #ids - most + 1), -1 do
    local id = ids[at]
    local job = jobs.read(id)
    local started_ms, ended_ms
    if job then
      started_ms = job[jobs.ATTEMPT] > 0 and job[jobs.STARTED_MS] or nil
      ended_ms = states.is_of(job[jobs.STATE], states.ENDED) and job[jobs.ENDED_MS] or nil
    end
    list[#list + 1] = {
      id = id, status = job and states.name(job[jobs.STATE]), started_ms = started_ms, ended_ms = ended_ms,
    }
  end
  return list
end

--- Creates the job of a due schedule.
---@return number steps
function M.fire(id)
  local schedule, now = M.load(id), meta.state[meta.NOW_MS]
  budget.pay(budget.RECORD)
  local at_ms = schedule and schedule.n or meta.NONE
  if at_ms > now then
    due.set(due.SCHEDULE .. id, at_ms)
    return 0
  end
  local next_of = times(schedule.s)
  if schedule.s.catch_up == false then
    at_ms = math.max(at_ms, next_of(now - MISSED_MS - 1))
  end
  if at_ms <= now then
    budget.pay(budget.STEP) -- reading the job's spec, finding the next time
    local job_id, created = create(schedule, at_ms, false)
    if created == 1 then
      budget.pay(budget.of_job(jobs.read(job_id)))
    end
  end
  schedule.n = next_of(now)
  save(schedule)
  return 1
end

--- The next n times.
---@return number[]
local function upcoming(schedule, n)
  local list = {}
  if schedule.n and n > 0 then
    local next_of = times(schedule.s)
    list[1] = math.max(schedule.n, next_of(meta.state[meta.NOW_MS]))
    for i = 2, n do
      list[i] = next_of(list[i - 1])
    end
  end
  return list
end

---@param schedule table record
---@param next_count number how many times to list, 0 for no list
---@param runs number how many of its last jobs to list
---@return string document
function M.document(schedule, next_count, runs)
  local shown = {
    made = schedule.m, next_ms = schedule.n, last_ms = schedule.l, last_id = schedule.i,
    next = next_count > 0 and upcoming(schedule, next_count) or nil,
    runs = runs > 0 and runs_of(schedule, runs) or nil,
  }
  for field, value in pairs(schedule.s) do
    shown[field] = value
  end
  shown.declared = nil
  return documents.pack(shown, { argument = schedule.a }) -- as it came
end

return M
