---@lazy
-- From schema 2 or 3 to schema 4. The header and the settings are rewritten at once; records can be read as they are
-- (module job.record). What schema 2 stored comes into the indexes of tags and failures in steps. Until that is done
-- meta has a flag, and a job that moves meanwhile is put in by module life.transition: so it does not matter which sets
-- were looked through when it moved.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local budget = require "jqlua.job.budget"
local batch = require "jqlua.base.writes"
local due = require "jqlua.base.due"
local failgroups = require "jqlua.job.failed"
local job = require "jqlua.job.record"
local states = require "jqlua.job.states"
local queue = require "jqlua.queue.record"
local rank = require "jqlua.base.rank"
local settings = require "jqlua.settings.settings"
local tagindex = require "jqlua.job.tags"

local M = {}

local call = redis.call

-- Without the secret.
local HEADER_SIZE = 22
-- How many settings each of the schemas before has.
local SETTINGS = { [2] = 14, [3] = 17 }
-- What else is due comes in between.
local MOST_AT_ONCE = 40
local EVERY_MS = 5

---@return string packed the settings' defaults from a place in their list on
local function defaults_from(first)
  local values = {}
  for i = first, settings.EARLY do
    values[i] = settings.ALL[i][2]
  end
  return settings.packed(values, first, settings.EARLY)
end

---@param raw string|false meta as stored
---@return boolean # whether it is of a schema before this one
function M.is_before(raw)
  local count = raw and #raw >= HEADER_SIZE and SETTINGS[struct.unpack(">I2", raw)]
  return count and #raw >= HEADER_SIZE + count * 8
end

--- The namespace is of this schema from now on.
---@param raw string meta of a schema before
function M.begin(raw)
  local schema = struct.unpack(">I2", raw)
  local flags = raw:byte(meta.FLAGS_OFFSET + 1)
  if schema == 2 then
    flags = flags + meta.MIGRATING
    call("SET", keys.MIGRATION, cmsgpack.pack({ q = "", l = 0 }))
  end
  call("SET", keys.META, struct.pack(">I2", meta.SCHEMA) .. raw:sub(3, meta.FLAGS_OFFSET) .. string.char(flags)
    .. raw:sub(meta.FLAGS_OFFSET + 2, HEADER_SIZE) .. meta.new_secret()
    .. raw:sub(HEADER_SIZE + 1, HEADER_SIZE + SETTINGS[schema] * 8) .. defaults_from(SETTINGS[schema] + 1))
end

local function finish()
  meta.save_flags(meta.state[meta.FLAGS] - meta.MIGRATING)
  call("UNLINK", keys.MIGRATION)
  due.set(due.MIGRATION, meta.NONE)
end

--- Puts a job into the indexes; it may be there.
local function put(owner, id, score)
  local of = job.read(id)
  if not of then
    return
  end
  if of[job.OPTIONS] ~= "" then
    tagindex.enter(owner, of)
  end
  if of[job.STATE] == states.ERROR then
    failgroups.enter(of, failgroups.group_of(call("GET", keys.EXTRA .. id)), score)
  end
end

--- The queue behind the one that was last looked through.
local function next_queue(at)
  local from = at.q == "" and "-" or "(" .. at.q
  local name = call("ZRANGEBYLEX", keys.QUEUE_NAMES, from, "+", "LIMIT", 0, 1)[1]
  return name and { q = name, l = 1 }
end

--- Goes on through the sets of all queues.
---@return number steps
function M.step(limit)
  limit = math.min(limit, MOST_AT_ONCE)
  local at = cmsgpack.unpack(call("GET", keys.MIGRATION) or cmsgpack.pack({ q = "", l = 0 }))
  local steps = 0
  while steps < limit do
    if at.l == 0 or at.l > #states.ALL then
      at = next_queue(at)
      if not at then
        tagindex.flush()
        finish()
        return steps + 1
      end
    end
    local owner = queue.load(at.q)
    local most = limit - steps
    local page = rank.next(queue.key(owner, states.ALL:sub(at.l, at.l)), at.i and { at.s, at.i }, most)
    for _, member in ipairs(page) do
      put(owner, member[2], member[1])
      budget.pay(budget.STEP)
      at.s, at.i = member[1], member[2]
    end
    steps = steps + math.max(#page, 1)
    if #page < most then
      at = { q = at.q, l = at.l + 1 }
    end
  end
  tagindex.flush()
  batch.flush()
  call("SET", keys.MIGRATION, cmsgpack.pack(at))
  due.set(due.MIGRATION, meta.state[meta.NOW_MS] + EVERY_MS)
  return steps
end

return M
