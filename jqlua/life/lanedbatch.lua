---@lazy
-- What module life.laned does for one job, for several at once.
local keys = require "jqlua.base.keys"
local attempt = require "jqlua.life.attempt"
local clock = require "jqlua.base.clock"
local constraint = require "jqlua.limits.constraint"
local job = require "jqlua.job.record"
local laned = require "jqlua.life.laned"
local meta = require "jqlua.base.meta"
local plain = require "jqlua.life.plain"
local queue = require "jqlua.queue.record"
local room = require "jqlua.limits.room"
local statlog = require "jqlua.statistics.log"
local transition = require "jqlua.life.transition"
local units = require "jqlua.limits.units"

local M = {}

--- enqueue: several jobs of one queue and name.
---@param of table as of laned.enqueue
---@return table? reply
---@return boolean? is_full whether the log is to be folded
function M.enqueue(of)
  local name, records, adds, raws, matching = of[1], of[3], of[4], of[5], of[6]
  local call = redis.call
  local _, kind, section, after = struct.unpack(constraint.MATCHING_FORMAT, matching)
  local definitions = kind ~= constraint.SECTION_OF_ALL and cmsgpack.unpack(matching:sub(after))
  local count, known = #records, {}
  local seq = tonumber(raws[2] or "0", 16)
  local now = clock.now()
  local least = now * 1024 - 1
  seq = seq < least and least or seq
  local has_lanes = raws[3]:byte() % queue.FAIR >= queue.LANED
  local writes = { keys.SEQ, string.format("%014x", seq + count) }
  local reply, heads, in_lane, in_q, in_w = { false }, {}, {}, {}, {}
  for i = 1, count do
    local id, record, priority = string.format("%014x", seq + i), records[i], adds[2 * i - 1]
    local own = definitions and laned.section_of(of, i, definitions, kind, section, known) or section
    local to = in_q
    if own ~= "" then
      if not has_lanes then
        return nil -- the first of its lanes
      end
      record = string.char(record:byte() + job.LANED) .. "w" .. record:sub(3) .. own
      to = in_w
      local lane = own:sub(1, laned.LANE_SIZE)
      local members = in_lane[lane]
      if not members then
        in_lane[lane] = { priority, id }
        heads[#heads + 1], heads[lane] = lane, 1
      else
        local n = #members
        members[n + 1], members[n + 2] = priority, id
        if tonumber(priority) < tonumber(members[heads[lane]]) then
          heads[lane] = n + 1
        end
      end
    end
    local n = #to
    to[n + 1], to[n + 2] = priority, id
    n = 4 * i - 2
    writes[n + 1], writes[n + 2] = keys.JOB .. id, record
    writes[n + 3], writes[n + 4] = keys.ARGUMENT .. id, ARGV[2 * i]
    reply[i] = { id, 1 }
  end
  call("MSET", unpack(writes))
  if in_q[1] then
    call("ZADD", keys.SET .. "q:" .. name, unpack(in_q))
  end
  if in_w[1] then
    call("ZADD", keys.SET .. "w:" .. name, unpack(in_w))
  end
  for _, lane in ipairs(heads) do
    local members, best = in_lane[lane], heads[lane]
    local head = call("ZRANGE", keys.LANE .. lane, 0, 0, "WITHSCORES")
    call("ZADD", keys.LANE .. lane, unpack(members))
    if not head[1] or tonumber(members[best]) < tonumber(head[2]) then
      call("ZADD", keys.LANES .. name, members[best], laned.NO_START .. members[best + 1] .. "l" .. lane)
    end
  end
  return reply, laned.log(raws[1], now, name, of[2], statlog.ONE_ENQUEUED, count, statlog.NONE)
end

--- A job that starts, written out as in laned.take.
---@param its table {section, lease_end_min, now, tail, queue}
---@return string? record nil when it is not to be started here
---@return number? until_ms
---@return string? document
local function started(raw, id, its)
  local unpack_struct, pack = struct.unpack, struct.pack
  if not raw or raw:byte() < job.LANED or raw:sub(2, 2) ~= "w" then
    return nil
  end
  local flags = raw:byte()
  local number, failures, how = 1, 0, "-"
  local job_name, priority, timeout_ms, options, before, after, _
  local static
  if flags % 4 < job.STARTED then
    _, _, job_name, _, priority, _, timeout_ms, options, after = unpack_struct(job.SHORT, raw)
    flags = flags + job.STARTED
    static = raw:sub(job.STATIC_IN_SHORT, after - 1)
  else
    _, _, how, number, failures, _, _, job_name, _, priority, _, timeout_ms, options, before, after =
      unpack_struct(job.LONG, raw)
    number = number + 1
    static = raw:sub(job.STATIC_IN_LONG, after - 2 - #before)
  end
  local now, name = its[3], its[5]
  local until_ms = now + timeout_ms
  if options ~= "" or raw:sub(after) ~= its[1] or until_ms < its[2] then
    return nil
  end
  return pack(job.RUN, flags, "r", how, number, failures, now, 0) .. static .. its[4], until_ms,
    "\135\162id\174" .. id .. "\164name\217" .. string.char(#job_name) .. job_name .. "\165queue\217"
      .. string.char(#name) .. name .. pack(attempt.NUMBERS, attempt.PRIORITY, priority, attempt.ATTEMPT, number,
        attempt.RETRY_COUNT, failures, attempt.TIMEOUT, timeout_ms / 1000)
end

--- How many jobs of a lane come before everything else that waits in the queue.
---@param waiting string[] ids and scores of the lane
---@param others table[] {id, score} of what else there is
---@return number
local function before_all(waiting, others)
  local count = #waiting / 2
  for _, other in ipairs(others) do
    local id, priority = other[1], tonumber(other[2])
    while id and count > 0 do
      local its_priority = tonumber(waiting[2 * count])
      if its_priority < priority or its_priority == priority and waiting[2 * count - 1] < id then
        break
      end
      count = count - 1
    end
  end
  return count
end

--- Starts jobs of the first lane, as far as they are the best of the queue.
---@param wish table as of M.pick
---@param plain_first string[] id and score of the best plain job
---@param most number
---@param reply table to which they are added
---@return number count of jobs; 0 when nothing was done
local function take_lane(wish, plain_first, most, reply)
  local call, name, now = redis.call, wish[1], wish[5]
  local index = keys.LANES .. name
  local firsts = call("ZRANGE", index, 0, 1, "WITHSCORES")
  local member = firsts[1]
  if not member or member:sub(23, 23) ~= "l" then
    return 0
  end
  local lane = member:sub(24)
  local waiting = call("ZRANGE", keys.LANE .. lane, 0, most - 1, "WITHSCORES")
  if waiting[1] ~= member:sub(9, 22) or waiting[2] ~= firsts[2] then
    return 0
  end
  local count = before_all(waiting, { plain_first, { firsts[3] and firsts[3]:sub(9, 22), firsts[4] } })
  local raw = count > 0 and call("GET", keys.JOB .. waiting[1])
  if not raw or raw:byte() < job.LANED then
    return 0
  end
  local after
  if raw:byte() % 4 < job.STARTED then
    after = select(9, struct.unpack(job.SHORT, raw))
  else
    after = select(15, struct.unpack(job.LONG, raw))
  end
  local section = raw:sub(after)
  local of, value, limits = laned.only_key(section, 0)
  if not of or section:sub(1, laned.LANE_SIZE) ~= lane then
    return 0
  end
  local limit, concurrency = laned.count_running(limits[1], 0)
  local key, in_use, hold_ms, opens_ms = limits[2], 0, 0, 0
  if key then
    in_use, hold_ms, opens_ms = struct.unpack(room.KEY_FORMAT, key)
  end
  if not limit or hold_ms > now or opens_ms > now then
    return 0
  end
  count = math.min(count, concurrency - in_use)
  if count <= 0 then
    return 0
  end
  local wanted = {}
  for i = 1, 2 * count, 2 do
    wanted[i], wanted[i + 1] = keys.JOB .. waiting[i], keys.ARGUMENT .. waiting[i]
  end
  local raws = call("MGET", unpack(wanted))
  local _, _, due_running = struct.unpack(queue.FORMAT, wish[4])
  local tail = string.char(#wish[2]) .. wish[2] .. section:sub(1, laned.ENTRY_FLAGS - 1) .. "\1"
    .. section:sub(laned.ENTRY_FLAGS + 1)
  local its = { section, due_running, now, tail, name }
  local ids, writes, adds, documents = {}, {}, {}, {}
  local last_ms, score
  for i = 1, count do
    local record, until_ms, document = started(raws[2 * i - 1], waiting[2 * i - 1], its)
    if not record then
      break
    end
    if until_ms ~= last_ms then
      last_ms, score = until_ms, string.format("%d", until_ms)
    end
    local n = 2 * i
    ids[i] = waiting[n - 1]
    writes[n - 1], writes[n] = wanted[n - 1], record
    adds[n - 1], adds[n] = score, ids[i]
    documents[i] = { document, raws[n] }
  end
  count = #ids
  -- Room that is left may be for lanes that the key holds.
  if count == 0 or key and #key > room.KEY_HEADER and in_use + count < concurrency then
    return 0
  end
  local n = 2 * count
  writes[n + 1], writes[n + 2] = keys.LIMIT .. of, (laned.count_running(limit, count))
  writes[n + 3] = keys.KEY .. string.format("%d:", of) .. value
  writes[n + 4] = key and struct.pack(">I4", in_use + count) .. key:sub(5)
    or struct.pack(room.KEY_FORMAT, count, 0, 0, 0, 0, 0)

  call("ZREM", keys.LANE .. lane, unpack(ids))
  local behind = call("ZRANGE", keys.LANE .. lane, 0, 0, "WITHSCORES")
  call("ZREM", index, member)
  if behind[1] then
    call("ZADD", index, behind[2], laned.NO_START .. behind[1] .. "l" .. lane)
  end
  call("ZREM", keys.SET .. "w:" .. name, unpack(ids))
  call("MSET", unpack(writes))
  call("ZADD", keys.SET .. "r:" .. name, unpack(adds))
  if not key then
    call("ZADD", keys.KEYS_OF .. of, 0, value)
  end
  for i = 1, count do
    reply[#reply + 1] = documents[i]
  end
  return count
end

--- pick: several jobs of one queue.
---@param wish table as plain.pick left it: {queue, worker, raw meta, record, now, first lane, count}
---@return table[] {document, argument}; fewer than asked for when the general path has to look for more
---@return number next_ms
function M.pick(wish)
  local found, count = {}, wish[7]
  local plain_first = redis.call("ZRANGE", keys.SET .. "q:" .. wish[1], 0, 0, "WITHSCORES")
  repeat
    local more = count - #found
  until more == 0 or take_lane(wish, plain_first, more, found) == 0
  local _, _, _, next_due = struct.unpack(meta.FORMAT, wish[3])
  return found, next_due == meta.NONE and -1 or next_due - wish[5]
end

--- What the jobs of a call have in common, and what each leaves.
---@param done table as of M.finish
---@return table? batch {name, job_name, ids, records of those that ended, items of statistics, keys that were used};
--- nil when one of the jobs is not like the others
local function batch_of(done)
  local unpack_struct, pack = struct.unpack, struct.pack
  local now, jobs, raws, attempts = done[4], done[8], done[9], done[10]
  local batch = { ids = {}, ended = {}, items = {}, used = {} }
  for i = 1, #attempts do
    local record = raws[i + 1]
    if not record or record:byte() ~= job.STARTED + job.LANED then
      return nil
    end
    local _, state, _, number, _, started_ms, _, job_name, own_queue, _, _, _, options, _, after =
      unpack_struct(job.LONG, record)
    local name = own_queue ~= "" and own_queue or job_name
    batch.name, batch.job_name = batch.name or name, batch.job_name or job_name
    local section = record:sub(after)
    if state ~= "r" or number ~= attempts[i] or options ~= "" or name ~= batch.name or job_name ~= batch.job_name
      or section:byte(laned.LANE_SIZE + 1) ~= 0 then
      return nil
    end
    local of, flags, _, value, behind = unpack_struct(laned.ENTRY, section, laned.FIRST_ENTRY)
    if flags ~= units.TAKEN or behind <= #section then
      return nil
    end
    local key_name = string.format("%d:", of) .. value
    local key = batch.used[key_name]
    if not key then
      key = { name = key_name, of = of, value = value, count = 0 }
      batch.used[key_name], batch.used[#batch.used + 1] = key, key
    end
    key.count = key.count + 1
    local id = jobs[i + 1]:sub(-14)
    batch.ids[i] = id
    batch.ended[i] = "\2ds" .. record:sub(4, 19) .. pack(">d", now) .. record:sub(job.STATIC_IN_LONG, after - 1)
    local wait, run = laned.times(id, number, started_ms, now)
    batch.items[i] = pack(statlog.ITEM, statlog.DONE, statlog.NUMBER + wait, statlog.NUMBER + run)
  end
  return batch
end

--- Reads the keys of a batch, and sees what becomes of them.
---@return boolean # false when one of them is not of the common kind
local function review(batch, owner, sleepers, now)
  local wanted = {}
  for i, key in ipairs(batch.used) do
    wanted[2 * i - 1], wanted[2 * i] = keys.LIMIT .. key.of, keys.KEY .. key.name
  end
  local raws = redis.call("MGET", unpack(wanted))
  batch.limits = {}
  for i, key in ipairs(batch.used) do
    local raw = raws[2 * i]
    local limit = laned.count_running(batch.limits[key.of] or raws[2 * i - 1], -key.count)
    if not limit or not raw then
      return false
    end
    batch.limits[key.of] = limit
    local in_use, hold_ms, opens_ms, _, last_ms, timer_ms = struct.unpack(room.KEY_FORMAT, raw)
    if #raw > room.KEY_HEADER then
      if hold_ms > now or opens_ms > now or sleepers > 0 then
        return false
      end
      key.index, key.first = laned.best_parked(key.name, raw:sub(room.KEY_HEADER + 1), batch.name, owner)
      if not key.index then
        return false
      end
    elseif in_use == key.count and (hold_ms > now or timer_ms > 0 or last_ms > 0) then
      return false
    end
    if in_use > key.count or key.index then
      key.record = struct.pack(">I4", in_use - key.count) .. raw:sub(5)
    end
  end
  return true
end

--- finish: several successes of one queue and name, each under one key; or one, and several jobs are wanted.
---@param done table as plain.finish left it
---@return table? reply; its second part is missing when the general path has to pick
---@return table? popped, table? records, boolean? is_full as of laned.finish
---@return table? found what the general path is to add to, {document, argument} each
function M.finish(done)
  local call = redis.call
  local raw, now, wanted = done[3], done[4], done[5]
  local _, sleepers, drop, next_due = struct.unpack(meta.FORMAT, raw)
  local batch = batch_of(done)
  if not batch then
    return nil
  end
  local name = batch.name
  local owner = name == wanted and done[6] or call("GET", keys.QUEUE .. name)
  local is_dropped = drop % 2 == 1
  if not owner or owner:byte() >= queue.OWN or is_dropped and drop >= meta.OWN then
    return nil
  end
  local _, _, _, _, due_ended = struct.unpack(queue.FORMAT, owner)
  if not is_dropped and now + transition.REVIEW_MS < due_ended or not review(batch, owner, sleepers, now) then
    return nil
  end

  local writes, adds, score, gone, answers = {}, {}, string.format("%d", now), {}, {}
  for i, id in ipairs(batch.ids) do
    answers[i] = "done"
    if is_dropped then
      gone[2 * i - 1], gone[2 * i] = keys.JOB .. id, keys.ARGUMENT .. id
    else
      writes[2 * i - 1], writes[2 * i] = keys.JOB .. id, batch.ended[i]
      adds[2 * i - 1], adds[2 * i] = score, id
    end
  end
  for of, limit in pairs(batch.limits) do
    writes[#writes + 1] = keys.LIMIT .. of
    writes[#writes + 1] = limit
  end
  for _, key in ipairs(batch.used) do
    if key.record then
      writes[#writes + 1] = keys.KEY .. key.name
      writes[#writes + 1] = key.record
    else
      gone[#gone + 1] = keys.KEY .. key.name
      call("ZREM", keys.KEYS_OF .. key.of, key.value)
    end
    if key.index then
      call("ZREM", key.index, key.first[1])
      call("ZADD", keys.LANES .. name, "LT", key.first[2], key.first[1])
    end
  end
  if gone[1] then
    call("UNLINK", unpack(gone))
  end
  call("MSET", unpack(writes))
  if adds[1] then
    call("ZADD", keys.SET .. "d:" .. name, unpack(adds))
  end
  call("ZREM", keys.SET .. "r:" .. name, unpack(batch.ids))
  local is_full = false
  if drop % (2 * meta.UNCOUNTED) < meta.UNCOUNTED then
    local own = batch.job_name == name and "" or batch.job_name
    is_full = call("APPEND", keys.LOG, struct.pack(statlog.HEADER, statlog.NUMBER + (now - now % 1000) / 1000,
      statlog.TEXT + #name, name, statlog.TEXT + #own, own, statlog.SHORT + #batch.items)
      .. table.concat(batch.items)) > statlog.FULL
  end
  if not wanted then
    return { answers }, nil, nil, is_full
  end
  local is_plain, lane = plain.is_open(raw, wanted, done[6], false, now)
  if lane then
    local found, next_ms = M.pick({ wanted, done[7], raw, done[6], now, lane, done[11] })
    if #found == done[11] then
      return { answers, { next_ms, unpack(found) } }, nil, nil, is_full
    end
    return { answers }, {}, nil, is_full, found
  elseif is_plain then
    local reply, popped, records = plain.take(wanted, done[6], done[11], done[7], now, next_due)
    return { answers, reply }, popped, records, is_full
  end
  return { answers }, {}, nil, is_full
end

return M
