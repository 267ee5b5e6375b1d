-- The plain path: the life of a job that uses nothing special, written out.
--
-- A script's chunk runs anew at every call, functions, tables and all; for the common job that costs more
-- than what Redis does for it. So these functions do the common case with nothing but locals, and before anything
-- else is defined. Whatever is not plain (another field, a wrong value, a limit, a sleeper to wake, a timer to
-- note, a due moment) they leave, untouched, to the general path, which does the same for every case: here are
-- no checks beyond "is it plain", and no errors.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local clock = require "jqlua.base.clock"
local job = require "jqlua.job.record"
local queue = require "jqlua.queue.record"
local settings = require "jqlua.settings.settings"
local statlog = require "jqlua.statistics.log"
local transition = require "jqlua.life.transition"
local attempt = require "jqlua.life.attempt"

local M = {}

-- Anything but printable ASCII; * makes a pattern of a queue's name.
local UNUSUAL = "[^\32-\126]"
local UNUSUAL_QUEUE = "[^\32-\41\43-\126]"

--- enqueue: jobs of one queue that is known, without options of the call.
---@return table? reply
---@return table? of what is left to do, for module life.laned: {queue, name, records, {priority, ...} of every
--- second place,
--- raws, matching}
---@return boolean? is_full whether the log is to be folded
function M.enqueue()
  local argc = #ARGV
  if argc == 0 or argc % 2 ~= 0 or argc > 2000 then
    return nil
  end
  local find, pack = string.find, struct.pack
  local common, only_name, tally
  local records = { false }
  local adds = { false, false }
  for i = 1, argc, 2 do
    local ok, rest, spec = pcall(cmsgpack.unpack_one, ARGV[i])
    if not ok or rest ~= -1 or type(spec) ~= "table" or ARGV[i + 1] == "" then
      return nil
    end
    local name, own_queue, flags, priority, max_retry, timeout_ms = nil, "", 0, 0, 10, 30000
    for field, value in pairs(spec) do
      local kind = type(value)
      if field == "name" and kind == "string" then
        name = value
      elseif field == "priority" and kind == "number" and value % 1 == 0 and value >= -2147483648
        and value <= 2147483647 then
        priority = value
      elseif field == "keep_result" and kind == "boolean" then
        flags = value and job.KEEP_RESULT or 0
      elseif field == "timeout" and kind == "number" and value >= 0.001 and value <= 4000000 then
        timeout_ms = math.ceil(value * 1000)
      elseif field == "max_retry" and kind == "number" and value % 1 == 0 and value >= 0 and value <= 2147483647 then
        max_retry = value
      elseif field == "queue" and kind == "string" and value ~= "" then
        own_queue = value
      else
        return nil
      end
    end
    if not name or name == "" or #name > 255 or find(name, UNUSUAL_QUEUE) then
      return nil
    end
    if own_queue == name then
      own_queue = ""
    end
    local queue_name = own_queue == "" and name or own_queue
    if i == 1 then
      only_name = name
    elseif only_name ~= name then
      tally = tally or { [only_name] = (i - 1) / 2 }
      only_name = nil
    end
    if tally then
      tally[name] = (tally[name] or 0) + 1
    end
    if not common then
      if own_queue ~= "" and (#own_queue > 255 or find(own_queue, UNUSUAL_QUEUE)) then
        return nil
      end
      common = queue_name
    elseif common ~= queue_name then
      return nil
    end
    records[(i + 1) / 2] = pack(job.SHORT, flags, "q", #name, name, #own_queue, own_queue, priority, max_retry,
      timeout_ms, 0, "")
    adds[i] = priority == 0 and "0" or priority
  end

  local call = redis.call
  local raws = call("MGET", keys.META, keys.SEQ, keys.QUEUE .. common)
  local raw, record = raws[1], raws[3]
  if not raw or #raw < meta.HEADER_SIZE or not record or #KEYS ~= 2 or KEYS[2] ~= keys.META then
    return nil
  end
  local schema, sleepers, drop, _, version = struct.unpack(meta.FORMAT, raw)
  local flags, max_waiting, _, _, _, head_priority, _, _, free = struct.unpack(queue.FORMAT, record)
  if schema ~= meta.SCHEMA or sleepers > 0 or max_waiting > 0 or flags % queue.MIXED >= queue.FAIR
    or drop % meta.UNCOUNTED >= meta.EVENTS then
    return nil
  end
  if only_name ~= common and flags % queue.UNSORTED < queue.MIXED then
    return nil -- the first job of another name than the queue's
  end
  local may_match
  if version > 0 and (only_name ~= common or free ~= version) then
    -- What is remembered of this queue and name must say that no constraint can match.
    local matching = only_name and call("GET", keys.MATCHING .. common .. "\0" .. only_name)
    if not matching or struct.unpack(">I4", matching) ~= version then
      return nil
    elseif #matching > 4 then
      may_match = matching
    end
  end
  for i = 1, argc, 2 do
    if tonumber(adds[i]) < head_priority then
      return nil -- a better job than the index of queues knows of
    end
  end
  if may_match then
    return nil, { common, only_name, records, adds, raws, may_match }
  end
  -- See scripts/enqueue.lua for how ids come about. Of the same priority as the head, a new id comes behind it.
  local seq = tonumber(raws[2] or "0", 16)
  local now = clock.now()
  local least = now * 1024 - 1
  if seq < least then
    seq = least
  end
  local count = argc / 2
  local writes = { false, false, false, false, keys.SEQ, false }
  local reply = { false }
  local n = 0
  for i = 1, count do
    local id = string.format("%014x", seq + i)
    writes[n + 1], writes[n + 2] = keys.JOB .. id, records[i]
    writes[n + 3], writes[n + 4] = keys.ARGUMENT .. id, ARGV[2 * i]
    n = i == 1 and 6 or n + 4
    adds[2 * i] = id
    reply[i] = { id, 1 }
    writes[6] = id
  end
  call("MSET", unpack(writes))
  call("ZADD", keys.SET .. "q:" .. common, unpack(adds))
  if drop % (2 * meta.UNCOUNTED) >= meta.UNCOUNTED then
    return reply
  end
  local seconds = statlog.NUMBER + (now - now % 1000) / 1000
  local own = only_name == common and "" or only_name
  local entry = own and pack(statlog.ENTRY, seconds, statlog.TEXT + #common, common, statlog.TEXT + #own, own,
    statlog.ONE_ENQUEUED, statlog.NUMBER + count, statlog.NUMBER + statlog.NONE) or ""
  if not own then
    for name, its_count in pairs(tally) do
      own = name == common and "" or name
      entry = entry .. pack(statlog.ENTRY, seconds, statlog.TEXT + #common, common, statlog.TEXT + #own, own,
        statlog.ONE_ENQUEUED, statlog.NUMBER + its_count, statlog.NUMBER + statlog.NONE)
    end
  end
  return reply, nil, call("APPEND", keys.LOG, entry) > statlog.FULL
end

--- Starts jobs of one queue.
---@param name string the queue
---@param record string its record; it is not paused
---@return table? reply {next_ms, {document, argument}, ...}
---@return table? popped when there is no reply: what was popped already, and
---@return table? records its records and arguments; nothing else was done
function M.take(name, record, count, worker, now, next_due)
  local call, unpack_struct, pack = redis.call, struct.unpack, struct.pack
  local popped = call("ZPOPMIN", keys.SET .. "q:" .. name, count)
  local n = #popped
  local wanted = { false, false }
  for i = 1, n, 2 do
    local id = popped[i]
    wanted[i], wanted[i + 1] = keys.JOB .. id, keys.ARGUMENT .. id
  end
  if n == 0 then
    return { next_due == meta.NONE and -1 or next_due - now }, popped
  end
  local records = call("MGET", unpack(wanted))
  local _, _, due_running = unpack_struct(queue.FORMAT, record)
  local tail = string.char(#worker) .. worker
  -- As text: a number costs twice as much as a score, since Redis prints it with 17 digits.
  local last_ms, score
  local adds = { false, false }
  local reply = { next_due == meta.NONE and -1 or next_due - now, false }
  for i = 1, n, 2 do
    local raw = records[i]
    if not raw then
      return nil, popped, records
    end
    local flags = raw:byte()
    local static
    local number, failures, how = 1, 0, "-"
    local job_name, priority, timeout_ms, options, _
    if flags % 4 < job.STARTED then
      _, _, job_name, _, priority, _, timeout_ms, options = unpack_struct(job.SHORT, raw)
      flags = flags + job.STARTED
      static = raw:sub(job.STATIC_IN_SHORT)
    else
      local before
      _, _, how, number, failures, _, _, job_name, _, priority, _, timeout_ms, options, before =
        unpack_struct(job.LONG, raw)
      number = number + 1
      static = raw:sub(job.STATIC_IN_LONG, -2 - #before)
    end
    local until_ms = now + timeout_ms
    if options ~= "" or until_ms < due_running then
      return nil, popped, records -- it may have expired, or its lease is to be noted
    end
    local id = popped[i]
    if until_ms ~= last_ms then
      last_ms, score = until_ms, string.format("%d", until_ms)
    end
    adds[i], adds[i + 1] = score, id
    wanted[i + 1] = pack(job.RUN, flags, "r", how, number, failures, now, 0) .. static .. tail
    reply[(i + 3) / 2] = {
      "\135\162id\174" .. id .. "\164name\217" .. string.char(#job_name) .. job_name .. "\165queue\217"
        .. string.char(#name) .. name .. pack(attempt.NUMBERS, attempt.PRIORITY, priority, attempt.ATTEMPT, number,
          attempt.RETRY_COUNT, failures, attempt.TIMEOUT, timeout_ms / 1000),
      records[i + 1],
    }
  end
  call("MSET", unpack(wanted))
  call("ZADD", keys.SET .. "r:" .. name, unpack(adds))
  return reply
end

--- What a pick's spec asks for, if it is plain.
---@return string? queue_name
---@return number? count
---@return boolean? waits
function M.wants(spec)
  local name, count, waits = nil, 1, false
  for field, value in pairs(spec) do
    if field == "queues" and type(value) == "string" and value ~= "" and #value <= 255
      and not string.find(value, UNUSUAL_QUEUE) then
      name = value
    elseif field == "count" and type(value) == "number" and value >= 1 and value <= 1000 and value % 1 == 0 then
      count = value
    elseif field == "wait" and type(value) == "table" and type(value.on) == "string" and value.on ~= ""
      and #value.on <= 64 and not string.find(value.on, "[^%w._-]") and type(value.ms) == "number" and value.ms >= 1
      and value.ms <= 60000 then
      waits = true
      for inner in pairs(value) do
        if inner ~= "on" and inner ~= "ms" then
          return nil
        end
      end
    elseif field ~= "worker" then
      return nil
    end
  end
  return name, count, waits
end

---@return boolean whether it is a worker's plain name, and no registered worker's id
local function is_plain_worker(name)
  return type(name) == "string" and name ~= "" and #name ~= 15 and #name <= 255 and not string.find(name, UNUSUAL)
end

--- Whether jobs of a queue can be taken without looking at anything else.
---@param raw string meta
---@return boolean is_plain
---@return table? first lane that may start (member, score), if nothing but lanes is to be looked at besides
function M.is_open(raw, name, record, waits, now)
  local _, sleepers, _, next_due, _, added, pending = struct.unpack(meta.FORMAT, raw)
  if not record or now >= next_due or waits and sleepers > 0 then
    return false
  elseif added > 0 and struct.unpack(">I4", record, queue.VERSION_PLACE) < added then
    return false
  end
  local flags = record:byte()
  if flags % queue.MIXED == 0 and flags % queue.INDEXED < queue.UNSORTED then
    return true
  elseif flags % queue.MIXED ~= queue.LANED or flags % queue.INDEXED >= queue.UNSORTED or pending > 0 then
    return false
  end
  -- Of its lanes, all may be held.
  local first = redis.call("ZRANGE", keys.LANES .. name, 0, 0, "WITHSCORES")
  return not first[1], first[1] and first
end

--- pick: from one queue.
---@return table? reply
---@return table? popped, table? records as of take
---@return table? wish what is left to do, for module life.laned: {queue, worker, raw meta, record, now, first lane,
--- count}
function M.pick()
  local ok, rest, spec = pcall(cmsgpack.unpack_one, ARGV[1])
  if not ok or rest ~= -1 or type(spec) ~= "table" or #ARGV ~= 1 or not is_plain_worker(spec.worker) then
    return nil
  end
  local name, count, waits = M.wants(spec)
  if not name then
    return nil
  end
  local raws = redis.call("MGET", keys.META, keys.QUEUE .. name)
  local raw = raws[1]
  if not raw or #raw < meta.HEADER_SIZE or #KEYS ~= 2 or KEYS[2] ~= keys.META then
    return nil
  end
  local schema, _, drop, next_due = struct.unpack(meta.FORMAT, raw)
  local now = clock.now()
  if schema ~= meta.SCHEMA or drop % meta.UNCOUNTED >= meta.EVENTS then
    return nil
  end
  local is_plain, first = M.is_open(raw, name, raws[2], waits, now)
  if first then
    return nil, nil, nil, { name, spec.worker, raw, raws[2], now, first, count }
  elseif not is_plain then
    return nil
  end
  local reply, popped, records = M.take(name, raws[2], count, spec.worker, now, next_due)
  if reply and waits and not reply[2] then
    return nil -- to sleep
  end
  return reply, popped, records
end

--- The outcomes of a finish, if all are plain successes.
---@return table? ids with keys.META in front and a place behind
---@return table? attempts
local function successes(argc)
  local ids, attempts = { keys.META, false, false }, { false }
  local count = (argc - 1) / 2
  for i = 1, count do
    local ok, rest, outcome = pcall(cmsgpack.unpack_one, ARGV[2 * i])
    if not ok or rest ~= -1 or type(outcome) ~= "table" or ARGV[2 * i + 1] == "" then
      return nil
    end
    local id, fields = outcome.id, 0
    for _ in pairs(outcome) do
      fields = fields + 1
    end
    if fields ~= 3 or outcome.type ~= "success" or type(id) ~= "string" or #id ~= 14 then
      return nil
    end
    if count > 1 then
      if attempts[id] then
        return nil -- named twice
      end
      attempts[id] = true
    end
    ids[i + 1] = keys.JOB .. id
    attempts[i] = outcome.attempt
  end
  return ids, attempts
end

--- finish: successes of one queue.
---@return table? reply; its second part is missing when the general path has to pick
---@return table? popped, table? records as of take
---@return table? done what is left to do, for module life.laned: {id, record, raw meta, now, queue?, its record,
--- worker};
--- for module life.lanedbatch more: {..., keys of meta and records, what is there, attempts, number of jobs wanted}
---@return boolean? is_full whether the log is to be folded
function M.finish()
  local argc = #ARGV
  if argc < 3 or argc % 2 == 0 or argc > 2001 then
    return nil
  end
  local ok, rest, spec = pcall(cmsgpack.unpack_one, ARGV[1])
  if not ok or rest ~= -1 or type(spec) ~= "table" or not is_plain_worker(spec.worker) then
    return nil
  end
  local pick = spec.pick
  local wanted, count_wanted, waits
  if type(pick) == "table" and pick.worker == nil then
    wanted, count_wanted, waits = M.wants(pick)
  end
  for field in pairs(spec) do
    if field ~= "worker" and (field ~= "pick" or not wanted) then
      return nil
    end
  end
  local ids, attempts = successes(argc)
  if not ids then
    return nil
  end
  local call, unpack_struct = redis.call, struct.unpack
  local count = (argc - 1) / 2
  ids[count + 2] = wanted and keys.QUEUE .. wanted or nil
  local raws = call("MGET", unpack(ids))
  local raw = raws[1]
  if not raw or #raw < meta.HEADER_SIZE or #KEYS ~= 2 or KEYS[2] ~= keys.META then
    return nil
  end
  local schema, _, drop, next_due = unpack_struct(meta.FORMAT, raw)
  local now = clock.now()
  if schema ~= meta.SCHEMA or drop % meta.UNCOUNTED >= meta.EVENTS then
    return nil
  end
  local record = raws[2]
  if record and record:byte() == job.STARTED + job.LANED then
    if waits or wanted and (not raws[count + 2] or now >= next_due) then
      return nil
    elseif count > 1 or wanted and count_wanted > 1 then
      return nil, nil, nil, {
        ids[2]:sub(-14), record, raw, now, wanted, raws[count + 2], spec.worker, ids, raws, attempts, count_wanted,
      }
    end
    local _, state, _, number = unpack_struct(">Bc1c1I4", record)
    if state == "r" and number == attempts[1] then
      return nil, nil, nil, { ids[2]:sub(-14), record, raw, now, wanted, raws[3], spec.worker }
    end
    return nil
  end
  if wanted and not M.is_open(raw, wanted, raws[count + 2], waits, now) then
    return nil
  end

  local common
  local ended = struct.pack(">d", now)
  local score = string.format("%d", now)
  local is_dropped = drop % 2 == 1
  if is_dropped and drop >= meta.OWN then
    return nil -- the queue may keep what others do not
  end
  local answers, removed = { false }, { false }
  local adds, writes = {}, { false, false }
  local kept, results, until_ms -- of jobs whose results are kept
  local counted = drop % (2 * meta.UNCOUNTED) < meta.UNCOUNTED
  local log, last_name -- for the statistics: groups of items, with a place for the header in front
  local items, header_at = 0, 0
  local seconds = statlog.NUMBER + (now - now % 1000) / 1000
  for i = 1, count do
    record = raws[i + 1]
    if not record then
      return nil
    end
    local flags, state, _, number, _, started_ms = unpack_struct(">Bc1c1I4I4d", record)
    local is_kept = flags == job.STARTED + job.KEEP_RESULT
    if not is_kept and flags ~= job.STARTED or is_kept and is_dropped or state ~= "r" or number ~= attempts[i] then
      return nil
    end
    local job_name, own_queue, _, _, _, options_size = unpack_struct(">Bc0Bc0i4I4I4I2", record, job.STATIC_IN_LONG)
    if options_size > 0 then
      return nil -- a key of its own, tags, ...
    end
    local name = own_queue ~= "" and own_queue or job_name
    if common and common ~= name then
      return nil
    end
    common = name
    local key = ids[i + 1]
    local id = key:sub(-14)
    answers[i] = "done"
    removed[i] = id
    if counted then
      local wait, run = statlog.NONE, now - started_ms
      if number == 1 then
        wait = tonumber(id, 16)
        wait = started_ms - (wait - wait % 1024) / 1024
        wait = wait < 0 and 0 or wait > statlog.MOST and statlog.MOST or wait
      end
      run = run < 0 and 0 or run > statlog.MOST and statlog.MOST or run
      local own = own_queue == "" and "" or job_name
      if count == 1 then
        log = struct.pack(statlog.ENTRY, seconds, statlog.TEXT + #name, name, statlog.TEXT + #own, own,
          statlog.ONE_DONE, statlog.NUMBER + wait, statlog.NUMBER + run)
      else
        log = log or { false }
        if own ~= last_name then
          if items > 0 then
            log[header_at] = struct.pack(statlog.HEADER, seconds, statlog.TEXT + #name, name,
              statlog.TEXT + #last_name, last_name, statlog.SHORT + items - header_at)
          end
          items = items + 1
          header_at, last_name = items, own
        end
        items = items + 1
        log[items] = struct.pack(statlog.ITEM, statlog.DONE, statlog.NUMBER + wait, statlog.NUMBER + run)
      end
    end
    writes[2 * i - 1] = key
    if is_dropped then
      writes[2 * i] = keys.ARGUMENT .. id
    elseif is_kept then
      if not kept then
        kept, results = {}, {}
        until_ms = now + unpack_struct(">d", raw, settings.RESULT_TTL) * 1000
      end
      local n = #kept
      kept[n + 1], kept[n + 2] = until_ms, id
      results[n + 1], results[n + 2] = keys.OUTCOME .. id, ARGV[2 * i + 1]
      writes[2 * i] = "\11ks" .. record:sub(4, 19) .. ended .. record:sub(job.STATIC_IN_LONG)
    else
      local n = #adds
      adds[n + 1], adds[n + 2] = score, id
      writes[2 * i] = "\2ds" .. record:sub(4, 19) .. ended .. record:sub(job.STATIC_IN_LONG)
    end
  end
  if is_dropped then
    call("UNLINK", unpack(writes))
  else
    local own = common == wanted and raws[count + 2] or call("GET", keys.QUEUE .. common)
    if not own or own:byte() >= queue.OWN then
      return nil
    end
    local _, _, _, _, due_ended = unpack_struct(queue.FORMAT, own)
    if now + transition.REVIEW_MS < due_ended then
      return nil
    end
    call("MSET", unpack(writes))
    if adds[1] then
      call("ZADD", keys.SET .. "d:" .. common, unpack(adds))
    end
    if kept then
      call("MSET", unpack(results))
      call("ZADD", keys.SET .. "k:" .. common, unpack(kept))
    end
  end
  call("ZREM", keys.SET .. "r:" .. common, unpack(removed))
  local is_full = false
  if counted then
    if count > 1 then
      log[header_at] = struct.pack(statlog.HEADER, seconds, statlog.TEXT + #common, common, statlog.TEXT + #last_name,
        last_name, statlog.SHORT + items - header_at)
      log = table.concat(log)
    end
    is_full = call("APPEND", keys.LOG, log) > statlog.FULL
  end
  if not wanted then
    return { answers }, nil, nil, nil, is_full
  end
  local reply, popped, records = M.take(wanted, raws[count + 2], count_wanted, spec.worker, now, next_due)
  if reply and waits and not reply[2] then
    reply = nil -- to sleep
  end
  return { answers, reply }, popped, records, nil, is_full
end

return M
