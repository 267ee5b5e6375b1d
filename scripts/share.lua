-- Tells what is in use here of the constraints that the partitions of a system share, and sets what may be.
-- KEYS   namespace, namespace:meta
-- ARGV   spec {epoch, turn} or {epoch, turn, until_ms, shares: {id: [definition, concurrency, rate]}}
-- Reply  {now in ms, moved, settled, document, ...}
-- Errors INVALID field, INVALID user, CONFLICT epoch
-- Cost   a look at each shared constraint
-- Flags: drain
local arguments = require "jqlua.base.arguments"
local changes = require "jqlua.limits.rollout"
local check = require "jqlua.base.check"
local constraint = require "jqlua.limits.constraint"
local constraintdoc = require "jqlua.limits.constraintdoc"
local keyrecord = require "jqlua.limits.keyrecord"
local keys = require "jqlua.base.keys"
local limitrecord = require "jqlua.limits.limitrecord"
local meta = require "jqlua.base.meta"
local parking = require "jqlua.limits.parking"
local rate = require "jqlua.limits.rate"
local room = require "jqlua.limits.room"
local share = require "jqlua.limits.share"
local transition = require "jqlua.life.transition"

local MOST_LANES = 20 -- that are counted for what waits

--- Checks what is told of one constraint.
local function problem_of(id, told)
  local path = "shares." .. check.part(tostring(id))
  if type(id) ~= "string" or not check.is_list(told, 3, 3) or type(told[1]) ~= "string" then
    return check.problem(path, "a list: [definition, concurrency, rate]", told)
  end
  for i = 2, 3 do
    if not check.is_integer(told[i], 0, 1e9) then
      return check.problem(path .. "[" .. i - 1 .. "]", "an integer from 0 to 10^9", told[i])
    end
  end
end

local function check_spec(spec)
  local problem = arguments.check_epoch(spec)
  if problem then
    return problem
  elseif (spec.until_ms == nil) ~= (spec.shares == nil) then
    local missing = spec.shares == nil and "shares" or "until_ms"
    return "INVALID " .. missing .. ": until_ms and shares come together, got one of them"
  elseif spec.shares == nil then
    return nil
  elseif not check.is_integer(spec.until_ms, 0, 1e15) then
    return check.problem("until_ms", "a moment in ms since 1970", spec.until_ms)
  elseif type(spec.shares) ~= "table" or spec.shares[1] ~= nil then
    return check.problem("shares", "a map from ids to lists", spec.shares)
  end
  for id, told in pairs(spec.shares) do
    problem = problem or problem_of(id, told)
  end
  return problem
end

--- What tells a definition from others: a share of one is none of another.
local function digest(definition)
  return redis.sha1hex(cmsgpack.pack(definition.g, definition.c or 0, definition.l or 0, definition.p or 0)):sub(1, 16)
end

--- Puts a share in force.
local function put(definition, limit, key, told)
  local was = { limit[limitrecord.CONCURRENCY], limit[limitrecord.RATE] }
  local was_full = room.is_full(limit, key)
  local is_its = told ~= nil and told[1] == digest(definition)
  limitrecord.share_out(limit, is_its and definition.c and told[2] or 0, is_its and definition.l and told[3] or 0)
  if was[1] ~= limit[limitrecord.CONCURRENCY] or was[2] ~= limit[limitrecord.RATE] then
    if was_full then
      keyrecord.note_closed(key, meta.state[meta.NOW_MS])
    end
    parking.review(key)
  elseif not was_full and constraintdoc.held_by(key, nil, 1).jobs > 0 then
    parking.review(key) -- the share was over, and is not since the clock went back
  end
end

local function document(definition, limit, key)
  local now = meta.state[meta.NOW_MS]
  local full_ms = math.max(key[keyrecord.CLOSED_MS], key[keyrecord.OPENS_MS])
  return cmsgpack.pack({
    id = definition.i, definition = digest(definition), concurrency = definition.c or 0, rate = definition.l or 0,
    share = constraintdoc.share_of(limit), running = limit[limitrecord.RUNNING],
    starts = definition.l and rate.starts_in(limit, key) or 0,
    waiting = constraintdoc.held_by(key, nil, MOST_LANES).jobs,
    full_ms = room.is_full(limit, key) and now or math.min(full_ms, now),
  })
end

local spec, problem = arguments.spec("epoch turn until_ms shares")
problem = problem or check_spec(spec) or share.meet(spec.epoch, spec.turn, spec.shares ~= nil)
if problem then
  return redis.error_reply(problem)
end
-- Jobs that run may not be counted yet under a constraint that is new.
local is_settled = meta.state[meta.PENDING] == 0 or changes.carry_out()
local ids = redis.call("ZRANGE", keys.SHARED, 0, -1)
local found = {}
for i, id in ipairs(ids) do
  local definition = constraint.load(id)
  local limit = limitrecord.load(definition.n) -- under the shares until now
  found[i] = { definition, limit, keyrecord.load(definition.n, "") }
end
if spec.shares then
  share.renew(spec.until_ms)
end
local reply = { meta.state[meta.NOW_MS], share.load()[share.MOVED] and 1 or 0, is_settled and 1 or 0 }
for _, one in ipairs(found) do
  local definition, limit, key = unpack(one)
  if spec.shares then
    put(definition, limit, key, spec.shares[definition.i])
  end
  reply[#reply + 1] = document(definition, limit, key)
end
transition.commit()
return reply
