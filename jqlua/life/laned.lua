-- The life of a job under one limit of concurrency, written out as module life.plain does it for jobs without lanes,
-- and for
-- the same reason. What it does not know (rates, holds, several constraints, fair queues, strict order, keys that hold
-- lanes and stay open, ...) it leaves, untouched, to the general path, which does the same for every case.
local keys = require "jqlua.base.keys"
local clock = require "jqlua.base.clock"
local constraint = require "jqlua.limits.constraint"
local job = require "jqlua.job.record"
local matcher = require "jqlua.limits.matcher"
local meta = require "jqlua.base.meta"
local plain = require "jqlua.life.plain"
local queue = require "jqlua.queue.record"
local room = require "jqlua.limits.room"
local statlog = require "jqlua.statistics.log"
local transition = require "jqlua.life.transition"
local units = require "jqlua.limits.units"
local attempt = require "jqlua.life.attempt"

local M = {}

M.NO_START = "\0\0\0\0\0\0\0\0"
M.ENTRY = ">I4BdI2c0"
M.FIRST_ENTRY = 22 -- where it begins in a section without groups
M.ENTRY_FLAGS = 26
M.LANE_SIZE = 20

--- Notes what happened for the statistics.
---@param raw string meta
---@param kind string with the number of items in front
---@return boolean is_full whether the log is to be folded
function M.log(raw, now, name, job_name, kind, first, second)
  local _, _, drop = struct.unpack(meta.FORMAT, raw)
  if drop % (2 * meta.UNCOUNTED) >= meta.UNCOUNTED then
    return false
  end
  local own = job_name == name and "" or job_name
  return redis.call("APPEND", keys.LOG, struct.pack(statlog.ENTRY, statlog.NUMBER + (now - now % 1000) / 1000,
    statlog.TEXT + #name, name, statlog.TEXT + #own, own, kind, statlog.NUMBER + first, statlog.NUMBER + second))
    > statlog.FULL
end

--- How long a job waited and ran, as statistics have it.
---@return number wait_ms
---@return number run_ms
function M.times(id, number, started_ms, now)
  local wait, run = statlog.NONE, now - started_ms
  if number == 1 then
    wait = tonumber(id, 16)
    wait = started_ms - (wait - wait % 1024) / 1024
    wait = wait < 0 and 0 or wait > statlog.MOST and statlog.MOST or wait
  end
  return wait, run < 0 and 0 or run > statlog.MOST and statlog.MOST or run
end

--- The section of a job's record under constraints.
---@param i number which job of the call
---@param definitions table[] those that may match
---@param kind number as of constraint.matching
---@param section string that of jobs which match, as far as kind says
---@param known? table is filled: sections by key and cost
---@return string section "" when none matches
function M.section_of(of, i, definitions, kind, section, known)
  local facts = {
    name = of[2], queue = of[1], priority = tonumber(of[4][2 * i - 1]), tags = {}, argument = ARGV[2 * i],
  }
  if kind == constraint.SECTION_OF_MATCHES then -- there is but one
    return matcher.test(definitions[1].m, facts) and section or ""
  end
  local entries = {}
  for _, definition in ipairs(definitions) do
    if matcher.test(definition.m, facts) then
      entries[#entries + 1] = constraint.entry(definition, facts)
    end
  end
  if not entries[1] then
    return ""
  elseif not known or entries[2] then
    return units.encode(units.of_entries(of[1], entries))
  end
  local key = entries[1][units.NAME] .. "\0" .. entries[1][units.COST]
  if not known[key] then
    known[key] = units.encode(units.of_entries(of[1], entries))
  end
  return known[key]
end

--- enqueue: one job that constraints may match.
---@param of table as plain.enqueue left it: {queue, name, records, {priority, ...}, raws, matching}
---@return table? reply
---@return boolean? is_full whether the log is to be folded
function M.enqueue(of)
  local name, record, priority, raws, matching = of[1], of[3][1], of[4][1], of[5], of[6]
  local call = redis.call
  local _, kind, section, after = struct.unpack(constraint.MATCHING_FORMAT, matching)
  if kind ~= constraint.SECTION_OF_ALL then
    section = M.section_of(of, 1, cmsgpack.unpack(matching:sub(after)), kind, section)
  end
  if section ~= "" and raws[3]:byte() % queue.FAIR < queue.LANED then
    return nil -- the first of its lanes
  end
  local seq = tonumber(raws[2] or "0", 16)
  local now = clock.now()
  local least = now * 1024 - 1
  local id = string.format("%014x", (seq < least and least or seq) + 1)
  if section == "" then
    call("MSET", keys.JOB .. id, record, keys.ARGUMENT .. id, ARGV[2], keys.SEQ, id)
    call("ZADD", keys.SET .. "q:" .. name, priority, id)
    return { { id, 1 } }, M.log(raws[1], now, name, of[2], statlog.ONE_ENQUEUED, 1, statlog.NONE)
  end
  call("MSET", keys.JOB .. id, string.char(record:byte() + job.LANED) .. "w" .. record:sub(3) .. section,
    keys.ARGUMENT .. id, ARGV[2], keys.SEQ, id)
  call("ZADD", keys.SET .. "w:" .. name, priority, id)
  local lane = section:sub(1, M.LANE_SIZE)
  local head = call("ZRANGE", keys.LANE .. lane, 0, 0, "WITHSCORES")
  call("ZADD", keys.LANE .. lane, priority, id)
  if not head[1] or tonumber(priority) < tonumber(head[2]) then
    call("ZADD", keys.LANES .. name, priority, M.NO_START .. id .. "l" .. lane)
  end
  return { { id, 1 } }, M.log(raws[1], now, name, of[2], statlog.ONE_ENQUEUED, 1, statlog.NONE)
end

--- The one key of a section, if it is of the common kind.
---@param flags number that its entry must have
---@return number? number of the constraint
---@return string? value
---@return table? raws of its limits and the key
function M.only_key(section, flags)
  if section:byte(M.LANE_SIZE + 1) ~= 0 then
    return nil
  end
  local number, its_flags, _, value, after = struct.unpack(M.ENTRY, section, M.FIRST_ENTRY)
  if its_flags ~= flags or after <= #section then
    return nil
  end
  return number, value, redis.call("MGET", keys.LIMIT .. number, keys.KEY .. string.format("%d:", number) .. value)
end

--- Limits with the number of jobs that run changed.
---@return string? raw nil when there is more to them than concurrency
---@return number? concurrency
function M.count_running(raw, change)
  if not raw then
    return nil
  end
  local concurrency, rate, period, smooth, running = struct.unpack(room.LIMIT_FORMAT, raw)
  if rate > 0 then
    return nil
  end
  return struct.pack(room.LIMIT_FORMAT, concurrency, rate, period, smooth, running + change), concurrency
end

--- Starts the best job of a queue that has lanes.
---@param name string the queue
---@param record string its record
---@param first table member and score of its first lane
---@return table? reply nil when nothing was done
function M.take(name, record, first, worker, now, next_due)
  local call, unpack_struct, pack = redis.call, struct.unpack, struct.pack
  local index = keys.LANES .. name
  local member, priority = first[1], tonumber(first[2])
  if member:sub(23, 23) ~= "l" then
    return nil
  end
  local id, lane = member:sub(9, 22), member:sub(24)
  local other = call("ZRANGE", keys.SET .. "q:" .. name, 0, 0, "WITHSCORES")
  if other[1] then
    local its_priority = tonumber(other[2])
    if its_priority < priority or (its_priority == priority and other[1] < id) then
      return nil
    end
  end
  local raws = call("MGET", keys.JOB .. id, keys.ARGUMENT .. id)
  local raw = raws[1]
  if not raw or raw:byte() < job.LANED or raw:sub(2, 2) ~= "w" then
    return nil
  end
  local flags = raw:byte()
  local number, failures, how = 1, 0, "-"
  local job_name, own_priority, timeout_ms, options, before, after, _
  local static
  if flags % 4 < job.STARTED then
    _, _, job_name, _, own_priority, _, timeout_ms, options, after = unpack_struct(job.SHORT, raw)
    flags = flags + job.STARTED
    static = raw:sub(job.STATIC_IN_SHORT, after - 1)
  else
    _, _, how, number, failures, _, _, job_name, _, own_priority, _, timeout_ms, options, before, after =
      unpack_struct(job.LONG, raw)
    number = number + 1
    static = raw:sub(job.STATIC_IN_LONG, after - 2 - #before)
  end
  local section = raw:sub(after)
  local _, _, due_running = unpack_struct(queue.FORMAT, record)
  local until_ms = now + timeout_ms
  if options ~= "" or section:sub(1, M.LANE_SIZE) ~= lane or until_ms < due_running or own_priority ~= priority then
    return nil
  end
  local of, value, limits = M.only_key(section, 0)
  if not of then
    return nil
  end
  local limit, concurrency = M.count_running(limits[1], 1)
  local key, is_new = limits[2], not limits[2]
  if not limit then
    return nil
  elseif key then
    local in_use, hold_ms, opens_ms = unpack_struct(room.KEY_FORMAT, key)
    if in_use >= concurrency or hold_ms > now or opens_ms > now
      or #key > room.KEY_HEADER and in_use + 1 < concurrency then
      return nil
    end
    key = pack(">I4", in_use + 1) .. key:sub(5)
  else
    key = pack(room.KEY_FORMAT, 1, 0, 0, 0, 0, 0)
  end

  call("ZREM", keys.LANE .. lane, id)
  local behind = call("ZRANGE", keys.LANE .. lane, 0, 0, "WITHSCORES")
  call("ZREM", index, member)
  if behind[1] then
    call("ZADD", index, behind[2], M.NO_START .. behind[1] .. "l" .. lane)
  end
  call("ZREM", keys.SET .. "w:" .. name, id)
  call("MSET", keys.JOB .. id, pack(job.RUN, flags, "r", how, number, failures, now, 0) .. static
    .. string.char(#worker) .. worker .. section:sub(1, M.ENTRY_FLAGS - 1) .. "\1" .. section:sub(M.ENTRY_FLAGS + 1),
    keys.LIMIT .. of, limit, keys.KEY .. string.format("%d:", of) .. value, key)
  call("ZADD", keys.SET .. "r:" .. name, string.format("%d", until_ms), id)
  if is_new then
    call("ZADD", keys.KEYS_OF .. of, 0, value)
  end
  return {
    next_due == meta.NONE and -1 or next_due - now,
    {
      "\135\162id\174" .. id .. "\164name\217" .. string.char(#job_name) .. job_name .. "\165queue\217"
        .. string.char(#name) .. name .. pack(attempt.NUMBERS, attempt.PRIORITY, priority, attempt.ATTEMPT, number,
          attempt.RETRY_COUNT, failures, attempt.TIMEOUT, timeout_ms / 1000),
      raws[2],
    },
  }
end

--- pick: one job.
---@param wish table as plain.pick left it: {queue, worker, raw meta, record, now, first lane, count}
---@return table? reply
function M.pick(wish)
  local _, _, _, next_due = struct.unpack(meta.FORMAT, wish[3])
  return M.take(wish[1], wish[4], wish[6], wish[2], wish[5], next_due)
end

--- The best lane that a key holds, when it opens.
---@param places string those of the key's record
---@param owner string the record of the queue
---@return string? index that holds the lane; nil when this is not the common case
---@return table? first its member and score
function M.best_parked(key_name, places, name, owner)
  local place, after = struct.unpack(">I2c0", places)
  if place ~= "-" .. name or after <= #places or owner:byte() % queue.MIXED >= queue.FAIR then
    return nil
  end
  local index = keys.PARKED .. #key_name .. ":" .. key_name .. place
  local first = redis.call("ZRANGE", index, 0, 0, "WITHSCORES")
  local member, priority = first[1], tonumber(first[2])
  if not member or redis.call("EXISTS", keys.LANE .. member:sub(24)) == 0 then
    return nil
  end
  local _, _, _, _, _, head_priority, head_id = struct.unpack(queue.FORMAT, owner)
  if priority < head_priority or priority == head_priority and member:sub(9, 22) < head_id then
    return nil
  end
  return index, first
end

--- finish: one success.
---@param done table as plain.finish left it: {id, record, raw meta, now, queue wanted?, its record, worker}
---@return table? reply; its second part is missing when the general path has to pick
---@return table? popped empty, when it has to
---@return table? records
---@return boolean? is_full whether the log is to be folded
function M.finish(done)
  local call = redis.call
  local id, record, raw, now, wanted = done[1], done[2], done[3], done[4], done[5]
  local _, sleepers, drop, next_due = struct.unpack(meta.FORMAT, raw)
  local _, _, _, number, _, started_ms, _, job_name, own_queue, _, _, _, options, _, after =
    struct.unpack(job.LONG, record)
  local name = own_queue ~= "" and own_queue or job_name
  local section = record:sub(after)
  local of, value, limits = M.only_key(section, units.TAKEN)
  if not of or options ~= "" then
    return nil
  end
  local limit = M.count_running(limits[1], -1)
  local key = limits[2]
  local owner = name == wanted and done[6] or call("GET", keys.QUEUE .. name)
  if not limit or not key or not owner or owner:byte() >= queue.OWN then
    return nil
  end
  local in_use, hold_ms, opens_ms, _, last_ms, timer_ms = struct.unpack(room.KEY_FORMAT, key)
  local key_name = string.format("%d:", of) .. value
  local index, first
  if #key > room.KEY_HEADER then
    if hold_ms > now or opens_ms > now or sleepers > 0 then
      return nil
    end
    index, first = M.best_parked(key_name, key:sub(room.KEY_HEADER + 1), name, owner)
    if not index then
      return nil
    end
  elseif in_use == 1 and (hold_ms > now or timer_ms > 0 or last_ms > 0) then
    return nil
  end
  local is_dropped = drop % 2 == 1
  local _, _, _, _, due_ended = struct.unpack(queue.FORMAT, owner)
  if not is_dropped and now + transition.REVIEW_MS < due_ended then
    return nil
  end

  local is_unused = in_use == 1 and not index
  local key_record = not is_unused and struct.pack(">I4", in_use - 1) .. key:sub(5) or nil
  if is_dropped then
    call("UNLINK", keys.JOB .. id, keys.ARGUMENT .. id)
    call("MSET", keys.LIMIT .. of, limit, unpack(key_record and { keys.KEY .. key_name, key_record } or {}))
  else
    local ended = "\2ds" .. record:sub(4, 19) .. struct.pack(">d", now) .. record:sub(job.STATIC_IN_LONG, after - 1)
    if key_record then
      call("MSET", keys.JOB .. id, ended, keys.LIMIT .. of, limit, keys.KEY .. key_name, key_record)
    else
      call("MSET", keys.JOB .. id, ended, keys.LIMIT .. of, limit)
    end
    call("ZADD", keys.SET .. "d:" .. name, string.format("%d", now), id)
  end
  if is_unused then
    call("UNLINK", keys.KEY .. key_name)
    call("ZREM", keys.KEYS_OF .. of, value)
  end
  call("ZREM", keys.SET .. "r:" .. name, id)
  if index then
    call("ZREM", index, first[1])
    call("ZADD", keys.LANES .. name, "LT", first[2], first[1])
  end
  local wait, run = M.times(id, number, started_ms, now)
  local is_full = M.log(raw, now, name, job_name, statlog.ONE_DONE, wait, run)
  if not wanted then
    return { { "done" } }, nil, nil, is_full
  end
  local is_plain, lane = plain.is_open(raw, wanted, done[6], false, now)
  local reply
  if lane then
    reply = M.take(wanted, done[6], lane, done[7], now, next_due)
  elseif is_plain then
    local popped, records
    reply, popped, records = plain.take(wanted, done[6], 1, done[7], now, next_due)
    return { { "done" }, reply }, popped, records, is_full
  end
  return { { "done" }, reply }, not reply and {} or nil, nil, is_full
end

return M
