-- Registered workers: their records, what they hold, and their room. A worker that is pushed to stands in its
-- pool's set, ordered by load, exactly while it may get another job: it holds fewer than max_jobs, does not rest and
-- was not asked to be quiet. Workers with the same queues, refused names and key share a pool, so that dispatch reads
-- pools and not workers.
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local due = require "jqlua.base.due"
local settings = require "jqlua.settings.settings"
local sleepers = require "jqlua.workers.sleepers"

local M = {}

local call = redis.call

M.ID_SIZES = { [15] = true, [17] = true }

--- The channel on which masters sleep.
M.CHANNEL = "push"

--- Whether a worker's name has the form of a registered worker's id.
function M.is_id(name)
  return M.ID_SIZES[#name] and string.find(name, "^w[0-9a-f]+$") ~= nil
end

---@return table? record {n name, q queues, u url, m max_jobs, r refused names, p pool, w why it rests, k what was asked
--- of it (quiet, stop), l how many of its attempts timed out, s secrets with a blank between, a id of the key that it
--- was registered with, e as when seen an excuse made it count (life.pulse), h host, i pid, v version, j names of the
--- jobs that it knows, x ids of jobs that it is about to lose}
function M.load(id)
  local raw = call("HGET", keys.WORKERS, id)
  return raw and cmsgpack.unpack(raw) or nil
end

--- A worker's URL for display, without what may be secret.
---@param url string
---@return string
function M.shown_url(url)
  return (url:gsub("://[^/?#]*@", "://***@"):gsub("([?&][^=&]*[Pp][Aa][Ss][Ss][Ww][Oo][Rr][Dd][^=&]*)=[^&]*", "%1=***"))
end

function M.save(id, record)
  call("HSET", keys.WORKERS, id, cmsgpack.pack(record))
end

---@return boolean
function M.is_registered(id)
  return call("ZSCORE", keys.ALIVE, id) ~= false
end

local function is_resting(id)
  return call("ZSCORE", keys.RESTING, id)
end

--- Adds a worker to its pool's set if it has room, or removes it.
function M.place(id, record)
  if not record.u then
    return
  end
  local held = call("ZCARD", keys.HELD .. id)
  if held >= record.m or record.k or is_resting(id) then
    call("ZREM", keys.POOL .. record.p, id)
  else
    local was_empty = call("EXISTS", keys.POOL .. record.p) == 0
    call("ZADD", keys.POOL .. record.p, held / record.m, id)
    if was_empty and meta.state[meta.SLEEPERS] > 0 then
      sleepers.wake_channel(M.CHANNEL)
    end
  end
end

--- After a job left the worker.
function M.free(id, job_id)
  call("ZREM", keys.HELD .. id, job_id)
  local record = M.load(id)
  if record then
    M.place(id, record)
  end
end

--- After the worker got jobs (its held set is written).
function M.took(id)
  local record = M.load(id)
  if record then
    M.place(id, record)
  end
end

--- Records a heartbeat: an unreachable worker is reachable again.
function M.seen(id)
  call("ZADD", keys.ALIVE, meta.state[meta.NOW_MS], id)
  due.note(due.WORKERS, meta.state[meta.NOW_MS] + settings.at(settings.WORKER_TTL) * 1000)
  if is_resting(id) then
    local record = M.load(id)
    if record.w == "unreachable" then
      call("ZREM", keys.RESTING, id)
      M.place(id, record)
    end
  end
end

--- Records a heartbeat, if it is a registered worker's.
---@return boolean
function M.is_alive(name)
  if M.is_id(name) and M.is_registered(name) then
    M.seen(name)
    return true
  end
  return false
end

--- Whether the worker was asked to take no more jobs.
---@return boolean
function M.is_quiet(id)
  local record = M.load(id)
  return record ~= nil and record.k ~= nil
end

--- Asks a worker to do something.
---@param request string quiet, stop or resume
function M.ask(id, record, request)
  record.k = request ~= "resume" and request or nil
  M.save(id, record)
  M.place(id, record)
  if record.k then
    sleepers.leave(id)
  end
  call("SPUBLISH", keys.WORKER_CHANNEL .. id, request)
end

--- Counts an attempt that timed out.
function M.lapsed(id)
  local record = M.load(id)
  if record then
    record.l = (record.l or 0) + 1
    M.save(id, record)
  end
end

--- Gives this worker no jobs until then.
---@param why string busy or unreachable
function M.rest(id, record, why, until_ms)
  record.w = why
  M.save(id, record)
  call("ZADD", keys.RESTING, until_ms, id)
  due.note(due.RESTING, until_ms)
  M.place(id, record)
end

--- Adds a worker that is pushed to to its pool, new or changed.
function M.join(id, record)
  table.sort(record.r)
  local definition = cmsgpack.pack(record.q, record.r) .. (record.a or "")
  record.p = redis.sha1hex(definition):sub(1, 16)
  call("HSET", keys.POOLS, record.p, cmsgpack.pack({ q = record.q, r = record.r, a = record.a }))
  call("SADD", keys.POOL_MEMBERS .. record.p, id)
end

function M.leave(id, record)
  if not record.p then
    return
  end
  call("ZREM", keys.POOL .. record.p, id)
  call("SREM", keys.POOL_MEMBERS .. record.p, id)
  if call("EXISTS", keys.POOL_MEMBERS .. record.p) == 0 then
    call("HDEL", keys.POOLS, record.p)
  end
end

--- Records the names without which a worker picks, for display: it does not know them.
---@param names table<string, boolean>
function M.picks_without(id, names)
  local record = M.load(id)
  if record.u then
    return
  end
  local refused = {}
  for name in pairs(names) do
    refused[#refused + 1] = name
  end
  table.sort(refused)
  if table.concat(refused, "\0") ~= table.concat(record.r, "\0") then
    record.r = refused
    M.save(id, record)
  end
end

--- Records that this worker knows no jobs of a name.
function M.refuse_name(id, record, name)
  for _, known in ipairs(record.r) do
    if known == name then
      return
    end
  end
  M.leave(id, record)
  record.r[#record.r + 1] = name
  if record.u then
    M.join(id, record)
  end
  M.save(id, record)
end

return M
