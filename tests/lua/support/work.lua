-- What tests do with queues, constraints and workers: methods of each space.
local luassert = require "luassert"
local util = require "luassert.util"
local msgpack = require "support.msgpack"

local Space = {}

--- Takes all that another namespace holds: quicker than to make it anew for each test.
function Space:copy(other)
  local lists = {}
  for i, key in ipairs(other:keys()) do
    lists[i] = { key, self.name .. key:sub(#other.name + 1), "REPLACE" }
  end
  self.connection:call_each("COPY", lists)
end

--- What a listing gives, over all its pages.
---@return table[] documents
function Space:pages(script, spec)
  local documents = {}
  for _ = 1, 1000 do
    local reply = self:call(script, spec)
    for i = 2, #reply do
      documents[#documents + 1] = msgpack.unpack(reply[i])
    end
    spec.cursor = reply[1]
    if spec.cursor == "" then
      return documents
    end
  end
  error("the pages of " .. script .. " never end")
end

-- Queues, settings, what is due ------------------------------------------------------------------------

---@return number next_ms, number moved
function Space:tick(limit)
  local reply = self:call("tick", { limit = limit })
  return reply[1], reply[2]
end

--- Ticks until nothing is due.
function Space:settle()
  for _ = 1, 1000 do
    if self:tick(1000) ~= 0 then
      return
    end
  end
  error("the clock's work never ends")
end

function Space:set(settings)
  return msgpack.unpack(self:call("config", { set = settings }))
end

---@return table document
function Space:queue(spec)
  return msgpack.unpack(self:call("queue", type(spec) == "string" and { name = spec } or spec))
end

--- Counts of a queue that are not 0.
function Space:counts(name)
  local shown = msgpack.unpack(self:call("queues", { names = { name } })[2])
  local counts = {}
  for _, state in ipairs({ "queued", "scheduled", "blocked", "running", "retrying", "done", "error",
    "cancelled" }) do
    counts[state] = shown[state] ~= 0 and shown[state] or nil
  end
  return counts
end

-- Constraints ------------------------------------------------------------------------------------------

--- One job of a kind for each argument.
---@return string[] ids
function Space:enqueue_each(spec, ...)
  spec = type(spec) == "string" and { name = spec } or spec
  local arguments = {}
  for _, argument in ipairs({ ... }) do
    arguments[#arguments + 1] = spec
    arguments[#arguments + 1] = argument
  end
  return self.made(self:call_list("enqueue", arguments))
end

---@param match table|string a matcher, or its bytes
---@return table document
function Space:constrain(spec, match)
  return msgpack.unpack(self:call("constrain", spec, match))
end

function Space:unconstrain(id)
  return self:call("unconstrain", { id = id })
end

---@return table? document
function Space:constraint(id)
  local bytes = self:call("constraints", { ids = { id } })[2]
  return bytes and msgpack.unpack(bytes)
end

--- The keys in use of a constraint.
---@return table[] documents
function Space:usage(id)
  return self:pages("usage", { id = id, count = 1000 })
end

--- What usage says of one key, nil when it is not in use.
---@param by any the key's value, a list of values, or nil for a constraint without by
---@return table? document
function Space:key(id, by)
  for _, document in ipairs(self:usage(id)) do
    if util.deepcompare(document.by, by) then
      return document
    end
  end
end

---@return number moment until which the key is closed, in ms
function Space:hold(id, seconds, by)
  return self:call("hold", { id = id, seconds = seconds, by = by })
end

---@return table document
function Space:explain(id)
  return msgpack.unpack(self:call("explain", id))
end

--- All that may start now: picks again while next_ms is 0, as a client does.
---@param spec string|table queues, or a whole spec; count is the most that is taken in all
---@return table[] jobs, with next_ms as the last pick gave it
function Space:start(spec)
  if type(spec) == "string" or spec[1] then
    spec = { queues = spec }
  end
  local most = spec.count or 1000
  local jobs = {}
  for _ = 1, 300 do
    local one_pick = self.with({}, spec)
    one_pick.count = most - #jobs
    local picked = self:pick(one_pick)
    for _, job in ipairs(picked) do
      jobs[#jobs + 1] = job
    end
    jobs.next_ms = picked.next_ms
    if jobs.next_ms ~= 0 or #jobs == most then
      return jobs
    end
  end
  error("a pick answers 0 for ever (" .. #jobs .. " jobs)")
end

---@return string[] ids in the order they were started
function Space:start_ids(spec)
  return self.ids(self:start(spec))
end

--- The one job that is next.
function Space:start_one(queues)
  return self:start({ queues = queues, count = 1 })[1]
end

---@return string worker id
function Space:register(spec)
  spec.name = spec.name or "worker"
  spec.queues = spec.queues or "*"
  return self:call("register", spec)
end

---@return table? document
function Space:worker(id)
  for _, document in ipairs(self:pages("workers", {})) do
    if document.id == id and document.state ~= "gone" then
      return document
    end
  end
end

--- Jobs for workers that are pushed to.
---@return table[] jobs {id, token, ..., to, url, blob}, with next_ms
function Space:assign(spec)
  spec = spec or {}
  spec.master = spec.master or "master"
  local reply = self:call("assign", spec)
  local jobs = { next_ms = reply[1] }
  for i = 2, #reply, 6 do
    local job = msgpack.unpack(reply[i + 4])
    job.to, job.url, job.secrets, job.key = reply[i], reply[i + 1], reply[i + 2], reply[i + 3]
    job.blob = reply[i + 5]
    jobs[#jobs + 1] = job
  end
  return self:note(jobs)
end

--- A worker that finds nothing in these queues and goes to sleep.
function Space:sleep(worker, channel, queues, ms)
  local jobs = self:pick({ worker = worker, queues = queues, wait = { on = channel, ms = ms or 10000 } })
  luassert.are.same({}, self.ids(jobs))
  return jobs.next_ms
end

--- Takes the marker of a channel, as one who is blocked on it would.
---@return boolean
function Space:is_woken(channel)
  return self:redis("ZPOPMIN", self.name .. ":wake:" .. channel)[1] ~= nil
end

return Space
