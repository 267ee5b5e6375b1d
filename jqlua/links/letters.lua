---@lazy
-- Letters between partitions: written for couriers, applied where they are for, and taken back with the answer
-- (docs/protocol.md, section 22). Each says what is so when it is written, so one that comes twice, late, or behind a
-- later one changes nothing that a later one said.
--
-- follow  jobs of the sender depend on this one of yours; tell when it ends, keep its result
-- leave   none does any more
-- ended   this job, of the sender, which you follow, ended
-- enqueue make this job, which belongs to you (module links.onward)
local awaited = require "jqlua.job.awaited"
local check = require "jqlua.base.check"
local due = require "jqlua.base.due"
local elsewhere = require "jqlua.links.elsewhere"
local job = require "jqlua.job.record"
local keys = require "jqlua.base.keys"
local mail = require "jqlua.links.mail"
local meta = require "jqlua.base.meta"
local onward = require "jqlua.links.onward"
local readers = require "jqlua.links.readers"
local server = require "jqlua.base.server"
local states = require "jqlua.job.states"

local M = {}

local call = redis.call

local FORMAT = 1
local MOST_SETTLED = 100
local OK = "ok"
local GONE = "gone" -- there is no record of it
-- One that was refused is written again after this.
local REFUSED_MS = 60000

local ENDS = { d = "done", e = "error", c = "cancelled", a = "all_cancelled", n = "lost" }
local HOWS = { done = "d", error = "e", cancelled = "c", all_cancelled = "a", lost = "n" }

local function score_of(key, member)
  return tonumber(call("ZSCORE", key, member) or nil)
end

-- Writing ----------------------------------------------------------------------------------------------

--- What a partition is told of a job there that jobs here depend on, or did.
---@return table? letter
local function following(id)
  local waits = call("EXISTS", keys.DEPENDENTS .. id) == 1
  local since = tonumber(call("ZRANGE", keys.READERS .. id, -1, -1, "WITHSCORES")[2])
  if since then
    return {
      kind = "follow", id = id, at = math.max(mail.moment(), since), waits = waits, -- the clock may have gone back
      known = call("HEXISTS", keys.ELSEWHERE, id) == 1,
    }
  elseif not waits then
    return { kind = "leave", id = id, at = mail.moment() }
  end
end

--- What a partition is told of a job here that it follows.
---@return table? letter nil when it does not follow it any more, or it did not stay ended
local function ended(to, how, id)
  local seen = score_of(keys.READERS .. id, mail.PARTITION .. to)
  local of = job.read(id)
  if of and (how == states.ERROR or how == states.CANCELLED) then
    how = of[job.STATE]
  end
  if not seen or not ENDS[how] then
    return nil
  end
  return {
    kind = "ended", id = id, how = ENDS[how], seen = seen,
    kept = of ~= nil and of[job.STATE] == states.KEPT,
  }
end

--- Writes the letter about a subject, which is due for no other courier until its time is over.
---@return string? letter
function M.write(to, subject)
  local how, id = subject:sub(1, 1), subject:sub(2)
  local letter
  if how == mail.ENQUEUE and to == select(2, elsewhere.own()) then
    onward.look_anew(to, id)
    return nil
  elseif how == mail.ENQUEUE then
    letter = onward.letter(to, id)
  elseif how == mail.FOLLOW then
    letter = following(id)
  else
    letter = ended(to, how, id)
  end
  if not letter then
    call("ZREM", keys.OUTBOX .. to, subject)
    return nil
  end
  local until_ms = meta.state[meta.NOW_MS] + mail.LEASE_MS
  call("ZADD", keys.OUTBOX .. to, string.format("%.0f", until_ms), subject)
  letter.format, letter.to = FORMAT, to
  letter.system, letter.from = elsewhere.own()
  letter.subject, letter.until_ms = subject, until_ms
  return cmsgpack.pack(letter)
end

-- Checking ---------------------------------------------------------------------------------------------

local function is_digits(value)
  return type(value) == "string" and string.find(value, "^%x%x$") ~= nil
end

local function is_moment(value)
  return check.is_integer(value, 0, 2 ^ 53)
end

local function check_follow(letter, path)
  return not is_moment(letter.at) and check.problem(path .. ".at", "a moment", letter.at)
end

local function check_ended(letter, path)
  return not is_moment(letter.seen) and check.problem(path .. ".seen", "a moment", letter.seen)
    or not HOWS[letter.how] and check.problem(path .. ".how", "how a job ended", letter.how)
end

local function check_enqueue(letter, path)
  return type(letter.job) ~= "string" and check.problem(path .. ".job", "the bytes of a spec", letter.job)
    or (type(letter.argument) ~= "string" or letter.argument == "")
    and check.problem(path .. ".argument", "the bytes of one MessagePack value", letter.argument)
    or not is_moment(letter.age_ms) and check.problem(path .. ".age_ms", "milliseconds", letter.age_ms)
    or not check.is_id(letter.least) and check.problem(path .. ".least", check.ID, letter.least)
    or letter.schedule ~= nil and not check.is_name(letter.schedule)
    and check.problem(path .. ".schedule", check.NAME, letter.schedule)
    or (letter.schedule ~= nil or letter.schedule_ms ~= nil) and not is_moment(letter.schedule_ms)
    and check.problem(path .. ".schedule_ms", "milliseconds", letter.schedule_ms)
    or elsewhere.generation_problem(letter.generation or false, path .. ".generation")
end

-- By kind, with whether its id is one of the sender.
local KINDS = {
  follow = { check_follow, false }, leave = { check_follow, false }, ended = { check_ended, true },
  enqueue = { check_enqueue, true },
}

--- Takes a letter apart.
---@return table? letter
---@return string? problem
function M.read(blob, path)
  local letter = check.map(blob)
  if not letter then
    return nil, check.not_a_map(path, blob)
  elseif check.is_integer(letter.format, FORMAT + 1, 255) then
    return nil, "VERSION " .. path .. ": a letter of format " .. letter.format .. ", these scripts know " .. FORMAT
  end
  local kind = KINDS[letter.kind]
  local problem = letter.format ~= FORMAT and check.problem(path .. ".format", "1", letter.format)
    or not kind and check.problem(path .. ".kind", "follow, leave, ended or enqueue", letter.kind)
    or not check.is_id(letter.id) and check.problem(path .. ".id", check.ID, letter.id)
    or not is_digits(letter.from) and check.problem(path .. ".from", "two digits of a partition", letter.from)
    or not is_digits(letter.to) and check.problem(path .. ".to", "two digits of a partition", letter.to)
    or type(letter.system) ~= "string" and check.problem(path .. ".system", "the name of a system", letter.system)
    or kind[1](letter, path)
    or letter.from == letter.to and "INVALID " .. path .. ".to: partition " .. letter.to .. " writes to itself"
  if problem then
    return nil, problem
  end
  local whose = kind[2] and letter.from or letter.to
  if mail.digits_of(letter.id) ~= whose then
    return nil, "INVALID " .. path .. ".id: job " .. letter.id .. " is not of partition " .. whose
  end
  return letter
end

-- Applying ---------------------------------------------------------------------------------------------

local function is_outstanding(to, how, id)
  return call("ZSCORE", keys.OUTBOX .. to, how .. id) ~= false
end

--- Another partition follows a job of which there is no record: as a rule it is done, and its record's time is over.
---@return string answer
local function follow_gone(letter, follower)
  local id = letter.id
  local is_lost = call("ZREM", keys.DEPENDENTS .. id, follower) == 1 or letter.known
    or id > (call("GET", keys.SEQ) or "")
  call("ZADD", keys.READERS .. id, "GT", string.format("%.0f", letter.at), follower)
  for how in ("ecad"):gmatch(".") do
    if is_outstanding(letter.from, how, id) then
      return GONE -- how it ended is on its way
    end
  end
  mail.put(letter.from, (is_lost and mail.LOST or states.DONE) .. id)
  return GONE
end

--- What tells this server from one that takes over, which may lack what it was told.
local function server_mark()
  return redis.sha1hex(server.address() .. KEYS[1]):sub(1, 8)
end

---@return string state
local function follow(letter)
  local id, follower = letter.id, mail.PARTITION .. letter.from
  local of = job.read(id)
  if not of then
    return follow_gone(letter, follower)
  end
  local state = of[job.STATE]
  call("ZADD", keys.READERS .. id, "GT", string.format("%.0f", letter.at), follower)
  awaited.note(of)
  if state == states.KEPT or state == states.DONE then
    mail.put(letter.from, states.DONE .. id)
    return states.name(state)
  end
  if letter.waits then
    call("ZADD", keys.DEPENDENTS .. id, 0, follower)
  end
  if state == states.ERROR or state == states.CANCELLED then
    mail.put(letter.from, state .. id)
  end
  return states.name(state)
end

local function leave(letter)
  local id, follower = letter.id, mail.PARTITION .. letter.from
  local followed = score_of(keys.READERS .. id, follower)
  if not followed or followed <= letter.at then
    call("ZREM", keys.DEPENDENTS .. id, follower)
    readers.leave_one(follower, id)
  end
  return OK
end

--- A job of another partition ended: those here that wait for it are looked at as if it were of this one.
local function settle(letter)
  local id, from, how = letter.id, letter.from, HOWS[letter.how]
  local waits = call("EXISTS", keys.DEPENDENTS .. id) == 1
  if call("EXISTS", keys.READERS .. id) == 0 and not waits then
    if how ~= states.DONE or letter.kept then
      mail.put(from, mail.FOLLOW .. id) -- that nobody follows it
    end
    return OK
  elseif how == states.DONE then
    call("ZREM", keys.OUTBOX .. from, mail.FOLLOW .. id)
    mail.note_first(from)
    call("HDEL", keys.ELSEWHERE, id)
    if not letter.kept then
      call("UNLINK", keys.READERS .. id)
    end
  else
    call("HSET", keys.ELSEWHERE, id, how == mail.LOST and "lost" or states.name(how == "a" and "c" or how))
  end
  if waits then
    due.note(due.DEPENDENTS .. how .. id .. "." .. string.format("%.0f", letter.seen), due.AT_ONCE)
  end
  return OK
end

--- A partition takes no letters any more: what was to be asked of it is settled here.
---@param to string its digits
---@param state string module links.elsewhere
function M.settle_alone(to, state)
  for _, subject in ipairs(call("ZRANGE", keys.OUTBOX .. to, 0, MOST_SETTLED - 1)) do
    local how, id = subject:sub(1, 1), subject:sub(2)
    call("ZREM", keys.OUTBOX .. to, subject)
    if how == mail.ENQUEUE then
      onward.look_anew(to, id)
    elseif how == mail.FOLLOW then
      settle({ id = id, from = to, how = state == "lost" and "lost" or "done", seen = mail.moment() })
    end
  end
  mail.note_first(to)
end

--- Applies a letter.
---@param path string
---@return string answer, or why it cannot be
function M.apply(blob, path)
  local letter, problem = M.read(blob, path)
  if not letter then
    return problem
  end
  local count
  count, problem = elsewhere.count()
  local system, own = elsewhere.own()
  if problem then
    return problem
  elseif count == 0 then
    return "CONFLICT " .. path .. ": this namespace is no partition of a system"
  elseif letter.system ~= system then
    return "CONFLICT " .. path .. ".system: it is of the system " .. check.show(letter.system) .. ", and this one of "
      .. check.show(system)
  elseif letter.to ~= own then
    return "CONFLICT " .. path .. ".to: it is for partition " .. letter.to .. ", and this is " .. own
  elseif tonumber(letter.from, 16) >= count then
    return "CONFLICT " .. path .. ".from: the system has no partition " .. letter.from
  elseif letter.kind == "follow" then
    return follow(letter) .. " " .. server_mark()
  elseif letter.kind == "leave" then
    return leave(letter)
  elseif letter.kind == "enqueue" then
    return onward.arrive(letter, path)
  end
  return settle(letter)
end

-- Taking back ------------------------------------------------------------------------------------------

--- A partition took note that a job of it is followed.
---@param answer string its state, and the mark of its server. Is that another one, all that was followed before is told
---  to it once more
local function note_followed(to, id, answer)
  local now = meta.state[meta.NOW_MS]
  local state, mark = answer:match("^(%l+) (%x+)$")
  local known = call("HGET", keys.ELSEWHERE, to)
  if mark and mark ~= known then
    call("HSET", keys.ELSEWHERE, to, mark)
    if known then
      call("HSET", keys.ELSEWHERE, mail.ANEW .. to, string.format("%.0f", now))
    end
  end
  if call("EXISTS", keys.DEPENDENTS .. id) == 0 then
    call("ZREM", keys.OUTBOX .. to, mail.FOLLOW .. id)
    return
  end
  call("ZADD", keys.OUTBOX .. to, string.format("%.0f", now + mail.AGAIN_MS), mail.FOLLOW .. id)
  if state and state ~= GONE then
    call("HSET", keys.ELSEWHERE, id, state)
  end
end

--- A letter came back with what was answered. One about which there is something new stays as it is.
---@param letter table one of this partition
---@param answer string
function M.answered(letter, answer)
  local outbox, subject, id = keys.OUTBOX .. letter.to, letter.subject, letter.id
  if score_of(outbox, subject) ~= letter.until_ms
    or letter.kind == "leave" and call("EXISTS", keys.READERS .. id) == 1 then
    return
  end
  if answer:find("^%u") then -- refused: perhaps it will not be when the other side is of this version, too
    local again_ms = answer:find("^ROUTE") and onward.AGAIN_MS or REFUSED_MS
    call("ZADD", outbox, string.format("%.0f", meta.state[meta.NOW_MS] + again_ms), subject)
  elseif letter.kind == "enqueue" then
    onward.answered(letter, answer)
  elseif letter.kind == "follow" then
    note_followed(letter.to, id, answer)
  else
    call("ZREM", outbox, subject)
    local follower = mail.PARTITION .. letter.to
    local is_over = letter.how == "done" and not letter.kept or letter.how == "lost"
    if letter.kind == "leave" then
      call("HDEL", keys.ELSEWHERE, id)
    elseif is_over and (score_of(keys.READERS .. id, follower) or letter.seen) <= letter.seen then
      readers.leave_one(follower, id)
    end
  end
end

---@return boolean # whether it is one that this partition wrote
function M.is_own(letter)
  local system, own = elsewhere.own()
  return letter.system == system and letter.from == own and type(letter.subject) == "string"
    and type(letter.until_ms) == "number"
end

return M
