---@lazy
-- Room under constraints: what each key has in use, when it opens, and which lanes it holds.
--
-- A key is closed while as many of its jobs run as may, or until a moment: because it was put on hold, or because
-- the rate has no room for the job that was looked at last. Lanes that a closed key holds are parked on it, per
-- queue, in order. Always true: if a key is open and holds lanes of a queue, then the queue's index (module
-- limits.lane_index) has a lane of this key that is no worse than they. So a key that opens sends its best lane of
-- each queue, and a lane that leaves the index, or takes its best job from it, sends the next for every key of its
-- that is open. In a fair queue a turn makes other lanes worse, too: there, keys that are open send one more at
-- every start.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local budget = require "jqlua.base.budget"
local batch = require "jqlua.base.writes"
local due = require "jqlua.base.due"
local queue = require "jqlua.queue.record"
local ready = require "jqlua.limits.lane_index"
local units = require "jqlua.limits.units"

local M = {}

local call = redis.call

-- Fields of limits: the part of a constraint that every start needs.
M.CONCURRENCY = 1 -- 0: none
M.RATE = 2 -- starts in a period; 0: none
M.PERIOD_MS = 3
M.SMOOTH = 4 -- 0 or 1
M.RUNNING = 5 -- jobs that have a unit
M.NUMBER = 6
M.LIMIT_FORMAT = ">dddBd"

-- Fields of a key.
M.IN_USE = 1 -- units taken
M.HOLD_MS = 2 -- closed until then because somebody said so
M.OPENS_MS = 3 -- closed until then for lack of room under the rate
M.USED = 4 -- cost of the starts in keys.STARTS; smooth: the moment of the next start
M.LAST_MS = 5 -- the latest start
M.TIMER_MS = 6 -- keys.OPENING has it for then, or earlier
M.PLACES = 7 -- where it holds lanes, or did: queues, as units.parked has them
M.NAME = 8
M.OF = 9 -- number of its constraint
M.CHANGED = 10
M.IS_NEW = 11
M.KEY_FORMAT = ">I4ddddd"
M.KEY_HEADER = 44

-- So many keys are asked for more lanes when a job of a fair queue starts.
local MOST_SENT = 1000

-- Rounding of costs that are fractions.
local EPSILON = 1e-9

local limits = {} -- by number; false where the constraint is gone
local changed_limits = {}
local open = {} -- keys by name

local function decode_key(raw, name, number)
  local key
  if raw then
    key = { struct.unpack(M.KEY_FORMAT, raw) }
    local names, at = {}, M.KEY_HEADER + 1
    while at <= #raw do
      names[#names + 1], at = struct.unpack(">I2c0", raw, at)
    end
    key[M.PLACES] = names
  else
    key = { 0, 0, 0, 0, 0, 0, {} }
  end
  key[M.NAME], key[M.OF], key[M.CHANGED], key[M.IS_NEW] = name, number, false, not raw
  open[name] = key
  return key
end

--- Reads the limits and keys of entries, in one command.
---@param entries table[]
function M.fetch(entries)
  local wanted, into, asked = {}, {}, {}
  for _, entry in ipairs(entries) do
    local number = entry[units.NUMBER]
    if limits[number] == nil and not asked[number] then
      wanted[#wanted + 1] = keys.LIMIT .. number
      into[#wanted], asked[number] = number, true
    end
    if not open[entry[units.NAME]] then
      wanted[#wanted + 1] = keys.KEY .. entry[units.NAME]
      into[#wanted] = entry
    end
  end
  if not wanted[1] then
    return
  end
  local raws = call("MGET", unpack(wanted))
  for i = 1, #wanted do
    local target = into[i]
    if type(target) == "number" then
      limits[target] = raws[i] and { struct.unpack(M.LIMIT_FORMAT, raws[i]) } or false
      if raws[i] then
        limits[target][M.NUMBER] = target
      end
    else
      decode_key(raws[i], target[units.NAME], target[units.NUMBER])
    end
  end
end

---@return table? limit nil when there is no such constraint any more
function M.limit(number)
  if limits[number] == nil then
    local raw = call("GET", keys.LIMIT .. number)
    limits[number] = raw and { struct.unpack(M.LIMIT_FORMAT, raw) } or false
    if raw then
      limits[number][M.NUMBER] = number
    end
  end
  return limits[number] or nil
end

--- Puts limits in force.
---@param limit table?
function M.set_limit(number, limit)
  limits[number] = limit or false
  if limit then
    limit[M.NUMBER] = number
    changed_limits[number] = true
  else
    changed_limits[number] = nil
    call("UNLINK", keys.LIMIT .. number)
  end
end

---@return table key
function M.key(number, value)
  local name = units.key_name(number, value)
  return open[name] or decode_key(call("GET", keys.KEY .. name), name, number)
end

---@return string the value a key stands for
function M.value_of(key)
  return key[M.NAME]:sub(#string.format("%d:", key[M.OF]) + 1)
end

--- Has a key looked at, at that moment or before.
local function look_at(key, at_ms)
  local now = meta.state[meta.NOW_MS]
  if key[M.TIMER_MS] > now and key[M.TIMER_MS] <= at_ms then
    return
  end
  call("ZADD", keys.OPENING, at_ms, key[M.NAME])
  due.note("O", at_ms)
  key[M.TIMER_MS] = at_ms
  key[M.CHANGED] = true
end

--- What a start counts against a rate.
function M.cost(entry, limit)
  return math.min(entry[units.COST], limit[M.RATE])
end

local PAGE = 100
local MOST_AHEAD = 1000

--- When a key has room for a start of that cost under an exact rate, as far as is known: never too late. This reads.
---@return number opens_ms 0 when it has room now
---@return number old how many of the starts that are remembered have left the window
---@return number freed what they cost
function M.window_opens(limit, key, cost)
  -- A start would be dated so.
  local now = math.max(meta.state[meta.NOW_MS], key[M.LAST_MS])
  local enough = EPSILON * limit[M.RATE]
  local lacking = key[M.USED] + cost - limit[M.RATE]
  local old, freed = 0, 0
  if lacking <= enough then
    return 0, old, freed
  end
  local seen = 0
  while true do
    local starts = call("LRANGE", keys.STARTS .. key[M.NAME], seen, seen + PAGE - 1)
    local leaves_ms
    for _, start in ipairs(starts) do
      local at_ms, its_cost = struct.unpack(">dd", start)
      leaves_ms = at_ms + limit[M.PERIOD_MS]
      lacking = lacking - its_cost
      if leaves_ms <= now then
        old, freed = old + 1, freed + its_cost
      end
      if lacking <= enough then
        return leaves_ms > now and leaves_ms or 0, old, freed
      end
    end
    seen = seen + #starts
    if #starts < PAGE then
      return 0, old, key[M.USED]
    elseif seen >= MOST_AHEAD and leaves_ms > now then
      return leaves_ms, old, freed -- another look then
    end
  end
end

--- When a key has room for an entry under its rate; old starts are forgotten.
---@return number opens_ms
local function rate_opens(limit, key, entry)
  if limit[M.SMOOTH] == 1 then
    return math.ceil(key[M.USED])
  end
  local opens_ms, old, freed = M.window_opens(limit, key, M.cost(entry, limit))
  if freed > 0 then
    if old > 0 then
      call("LPOP", keys.STARTS .. key[M.NAME], old)
    end
    key[M.USED] = key[M.USED] - freed
    key[M.OPENS_MS] = 0 -- it was said of those that have left
    key[M.CHANGED] = true
  end
  return opens_ms
end

local function is_full(limit, key)
  return limit[M.CONCURRENCY] > 0 and key[M.IN_USE] >= limit[M.CONCURRENCY]
end

--- Until when a key is closed, other than by jobs that run. If the clock went back, a start would be dated like the
--- last.
function M.closed_until(key)
  return math.max(key[M.HOLD_MS], key[M.OPENS_MS] > key[M.LAST_MS] and key[M.OPENS_MS] or 0)
end

--- Whether a key is open, as far as that does not depend on what the start costs.
---@param has_unit? boolean whether the job has its unit already
local function is_open(limit, key, has_unit)
  local now = meta.state[meta.NOW_MS]
  return not limit or now >= key[M.HOLD_MS] and math.max(now, key[M.LAST_MS]) >= key[M.OPENS_MS]
    and (has_unit or not is_full(limit, key))
end

--- The first entry that has no room.
---@param entries table[] fetched
---@return table? entry
function M.lacking(entries)
  local now = meta.state[meta.NOW_MS]
  for _, entry in ipairs(entries) do
    local limit = limits[entry[units.NUMBER]]
    if limit then
      local key = open[entry[units.NAME]]
      if not is_open(limit, key, units.is_taken(entry)) then
        return entry
      end
      if limit[M.RATE] > 0 then
        local opens_ms = rate_opens(limit, key, entry)
        if opens_ms > math.max(now, key[M.LAST_MS]) then
          key[M.OPENS_MS] = opens_ms
          key[M.CHANGED] = true
          return entry
        end
      end
    end
  end
end

--- The place of an entry's lanes, when its key holds them in a queue.
local function place_of(entry, name)
  return (units.is_taken(entry) and "!" or "-") .. name
end

local function forget_place(key, place)
  for i, known in ipairs(key[M.PLACES]) do
    if known == place then
      table.remove(key[M.PLACES], i)
      key[M.CHANGED] = true
      return
    end
  end
end

--- The best lane that a key holds in a place may start, as far as this key goes.
local function send(key, place)
  local name = place:sub(2)
  local index = units.parked(key[M.NAME], place)
  local first, is_more
  repeat
    first, is_more = ready.first(index, name)
    if is_more or not budget.pay(budget.LOOK) then
      return look_at(key, meta.state[meta.NOW_MS]) -- the next call goes on
    elseif not first then
      return forget_place(key, place)
    end
    ready.remove(index, name, first)
    -- Lanes that lost their last job while they were held are of no use.
  until call("EXISTS", keys.LANE .. first.lane) == 1
  local owner = queue.load(name)
  ready.add(owner, first.priority, first.id, first.lane .. first.path)
  owner[queue.REOPENED] = true
  if first.path ~= "" then
    call("SADD", keys.SENT .. name, key[M.NAME])
  end
end

--- A key may have opened: its best lane of each place comes back.
function M.reopen(key)
  local limit = M.limit(key[M.OF])
  for i = #key[M.PLACES], 1, -1 do
    local place = key[M.PLACES][i]
    local has_unit = place:sub(1, 1) == "!"
    if is_open(limit, key, has_unit) then
      send(key, place)
    elseif has_unit or not is_full(limit, key) then
      look_at(key, M.closed_until(key))
    end
  end
end

--- A lane of these keys left its queue's index, or is worse than it was there: what they still have room for, the next
--- lanes may take.
---@param entries table[] fetched
---@param except? table entry
function M.pass_on(owner, entries, except)
  for _, entry in ipairs(entries) do
    local key = open[entry[units.NAME]]
    if entry ~= except and key[M.PLACES][1] then
      for i = #key[M.PLACES], 1, -1 do
        local place = key[M.PLACES][i]
        if place:sub(2) == owner[queue.NAME]
          and is_open(limits[entry[units.NUMBER]], key, place:sub(1, 1) == "!") then
          send(key, place)
        end
      end
    end
  end
end

--- A group of a fair queue had its turn, so that all its lanes are worse than they were: what keys sent before may
-- not be their best lane any more.
function M.send_more(owner)
  local name = owner[queue.NAME]
  for _, key_name in ipairs(call("SRANDMEMBER", keys.SENT .. name, MOST_SENT)) do
    local number = tonumber(key_name:match("^%d+"))
    local key = M.key(number, key_name:sub(#string.format("%d:", number) + 1))
    local limit = M.limit(number)
    local is_of_use = false
    for i = #key[M.PLACES], 1, -1 do
      local place = key[M.PLACES][i]
      if place:sub(2) == name and is_open(limit, key, place:sub(1, 1) == "!") then
        send(key, place)
        is_of_use = true
      end
    end
    if not is_of_use then
      call("SREM", keys.SENT .. name, key_name)
    end
  end
end

--- Has a key that lacks room looked at when it opens, though no lane is parked there.
---@param entry table that has no room
function M.note_opening(entry)
  local key = open[entry[units.NAME]]
  if units.is_taken(entry) or not is_full(limits[key[M.OF]], key) then
    look_at(key, M.closed_until(key))
  end
end

--- A lane waits until a key opens.
---@param entry table that has no room
---@param place table of the lane, as ready.first gave it
function M.park(owner, entry, place)
  local key = open[entry[units.NAME]]
  local name = owner[queue.NAME]
  local where = place_of(entry, name)
  ready.put(units.parked(key[M.NAME], where), name, place.priority, place.id, place.lane .. place.path)
  local is_known = false
  for _, known in ipairs(key[M.PLACES]) do
    is_known = is_known or known == where
  end
  if not is_known then
    table.insert(key[M.PLACES], where)
    key[M.CHANGED] = true
  end
  M.note_opening(entry)
end

--- Takes one unit without asking for room.
function M.occupy(entry)
  local limit = M.limit(entry[units.NUMBER])
  if not limit or units.is_taken(entry) then
    return
  end
  local key = open[entry[units.NAME]] or M.key(entry[units.NUMBER], entry[units.VALUE])
  key[M.IN_USE] = key[M.IN_USE] + 1
  key[M.CHANGED] = true
  limit[M.RUNNING] = limit[M.RUNNING] + 1
  changed_limits[entry[units.NUMBER]] = true
  entry[units.FLAGS] = entry[units.FLAGS] + units.TAKEN
end

--- A job starts: takes a unit of each of its keys.
---@param entries table[] fetched, all with room
function M.take(entries)
  local now = meta.state[meta.NOW_MS]
  for _, entry in ipairs(entries) do
    local limit = limits[entry[units.NUMBER]]
    if limit then
      M.occupy(entry)
      if limit[M.RATE] > 0 then
        local key = open[entry[units.NAME]]
        local cost = M.cost(entry, limit)
        local at_ms = math.max(now, key[M.LAST_MS])
        if limit[M.SMOOTH] == 1 then
          key[M.USED] = math.max(at_ms, key[M.USED]) + cost * limit[M.PERIOD_MS] / limit[M.RATE]
        elseif cost > 0 then
          key[M.USED] = key[M.USED] + cost
          call("RPUSH", keys.STARTS .. key[M.NAME], struct.pack(">dd", at_ms, cost))
        end
        key[M.LAST_MS] = at_ms
        key[M.CHANGED] = true
      end
    end
  end
end

--- A job leaves: gives its units back.
---@param keeps boolean whether it keeps those of strict order: it will run again
function M.leave(of, keeps)
  local own = units.of(of)
  if not own then
    return
  end
  local entries = own[units.ENTRIES]
  M.fetch(entries)
  for _, entry in ipairs(entries) do
    if units.is_taken(entry) and not (keeps and entry[units.FLAGS] >= units.STRICT) then
      entry[units.FLAGS] = entry[units.FLAGS] - units.TAKEN
      local limit = limits[entry[units.NUMBER]]
      if limit then
        local key = open[entry[units.NAME]]
        key[M.IN_USE] = key[M.IN_USE] - 1
        key[M.CHANGED] = true
        limit[M.RUNNING] = limit[M.RUNNING] - 1
        changed_limits[entry[units.NUMBER]] = true
        M.reopen(key)
      end
    end
  end
  if keeps then
    units.put(of, own)
  else
    units.put(of, nil)
  end
end

--- The limits of a constraint changed, or it is gone: a key is looked at again.
function M.review(key)
  budget.pay(budget.STEP)
  key[M.OPENS_MS] = 0
  key[M.CHANGED] = true
  M.reopen(key)
end

--- Closes a key until a moment, or opens it.
function M.hold(key, until_ms)
  key[M.HOLD_MS] = until_ms
  if until_ms <= meta.state[meta.NOW_MS] then
    key[M.HOLD_MS], key[M.OPENS_MS] = 0, 0
  end
  key[M.CHANGED] = true
  M.reopen(key)
end

--- Until when a key that nothing uses has to be remembered.
local function lives_until(limit, key)
  local until_ms = key[M.HOLD_MS]
  if limit[M.RATE] > 0 and key[M.LAST_MS] > 0 then
    until_ms = math.max(until_ms, limit[M.SMOOTH] == 1 and math.ceil(key[M.USED])
      or key[M.LAST_MS] + limit[M.PERIOD_MS])
  end
  return until_ms
end

--- Looks at keys whose time has come.
---@return number moved
---@return boolean is_behind whether there are more
function M.sweep(most)
  local now = meta.state[meta.NOW_MS]
  local names = call("ZRANGEBYSCORE", keys.OPENING, "-inf", now, "LIMIT", 0, most)
  local moved = 0
  for _, name in ipairs(names) do
    call("ZREM", keys.OPENING, name)
    local number = tonumber(name:match("^%d+"))
    local key = M.key(number, name:sub(#string.format("%d:", number) + 1))
    key[M.TIMER_MS] = 0
    key[M.CHANGED] = true
    M.reopen(key)
    moved = moved + 1
    if not budget.pay(budget.STEP) then
      break
    end
  end
  return moved, moved == most or moved < #names
end

local function encode_key(key)
  local names = {}
  for i, name in ipairs(key[M.PLACES]) do
    names[i] = struct.pack(">I2c0", #name, name)
  end
  return struct.pack(M.KEY_FORMAT, key[M.IN_USE], key[M.HOLD_MS], key[M.OPENS_MS], key[M.USED], key[M.LAST_MS],
    key[M.TIMER_MS]) .. table.concat(names)
end

--- A key that nothing uses any more is forgotten.
local function save_key(key)
  key[M.CHANGED] = false
  local limit = M.limit(key[M.OF])
  local value = M.value_of(key)
  if not key[M.PLACES][1] and (not limit or key[M.IN_USE] == 0) then
    local until_ms = limit and lives_until(limit, key) or 0
    if until_ms <= meta.state[meta.NOW_MS] then
      key[M.HOLD_MS], key[M.OPENS_MS], key[M.USED], key[M.LAST_MS], key[M.TIMER_MS] = 0, 0, 0, 0, 0
      if not key[M.IS_NEW] then
        call("UNLINK", keys.KEY .. key[M.NAME], keys.STARTS .. key[M.NAME])
        call("ZREM", keys.KEYS_OF .. key[M.OF], value)
        call("ZREM", keys.OPENING, key[M.NAME])
        key[M.IS_NEW] = true
      end
      return
    end
    look_at(key, until_ms)
    key[M.CHANGED] = false
  end
  local writes = batch.writes
  local n = #writes
  writes[n + 1], writes[n + 2] = keys.KEY .. key[M.NAME], encode_key(key)
  if key[M.IS_NEW] then
    call("ZADD", keys.KEYS_OF .. key[M.OF], 0, value)
    key[M.IS_NEW] = false
  end
end

--- Has what changed written at the next flush.
function M.save_all()
  for _, key in pairs(open) do
    if key[M.CHANGED] then
      save_key(key)
    end
  end
  local writes = batch.writes
  for number in pairs(changed_limits) do
    local limit = limits[number]
    local n = #writes
    writes[n + 1], writes[n + 2] = keys.LIMIT .. number, struct.pack(M.LIMIT_FORMAT, limit[M.CONCURRENCY],
      limit[M.RATE], limit[M.PERIOD_MS], limit[M.SMOOTH], limit[M.RUNNING])
    changed_limits[number] = nil
  end
end

return M
