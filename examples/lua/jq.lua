-- A client for JQ, written from docs/protocol.md, with redis-lua, LuaSocket and lua-MessagePack, and `sha1sum` for a
-- worker. Debian: lua5.1 lua-redis lua-socket lua-messagepack. One connection, one job at a time.
local redis = require "redis"
local socket = require "socket"
local messagepack = require "MessagePack"

messagepack.set_string "string" -- text must be str, not bin

local M = { pack = messagepack.pack, unpack = messagepack.unpack }
local JQ = {}
JQ.__index = JQ

local REPEAT_FOR_S = 30
local SLEEP_MS = 30000
local PASSES = { LOADING = true, READONLY = true, MASTERDOWN = true, CLUSTERDOWN = true, TRYAGAIN = true, BUSY = true }

--- A token that nobody else has: for names of workers, and to repeat calls with.
function M.token()
  local file = assert(io.open("/dev/urandom", "rb"))
  local bytes = file:read(12)
  file:close()
  return (bytes:gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end))
end

local read = redis.command("READ", { request = function() end })

---@param url string redis://host:port or unix:///path
---@param namespace? string where the jobs are
---@param manifest? string the namespace whose scripts are called, mostly the same
---@param form? string "scripts" calls all by EVALSHA, else what the manifest names as functions is called by FCALL
function M.connect(url, namespace, manifest, form)
  namespace = namespace or "{jq}"
  local self = setmetatable({ url = url, namespace = namespace, manifest = manifest or namespace, named = {} }, JQ)
  self.form = form or os.getenv("JQ_FORM")
  self:open()
  return self
end

function JQ:open()
  local connection = redis.connect(self.url)
  connection.read = read
  connection.error = function(message)
    -- An error reply is raised as its plain text, CODE path: message. All else is trouble with the connection.
    local text, is_reply = message:gsub("^redis error: ", "")
    self.is_lost = is_reply == 0
    error(text, 0)
  end
  self.connection, self.is_lost = connection, false
end

-- Calling an operation ---------------------------------------------------------------------------------

--- Any Redis command; an error reply is raised as its text.
function JQ:command(name, ...)
  self.connection.requests.multibulk(self.connection, name, { ... })
  return self.connection:read()
end

--- How an operation is called, and what it is loaded from: a library of functions, or a script.
function JQ:name(operation)
  local found = self:command("HMGET", self.manifest .. ":manifest", operation, "library", "functions")
  local sha, library, functions = found[1], found[2], found[3]
  assert(sha, "no script " .. operation .. " in " .. self.manifest .. ":manifest")
  local how = { call = "EVALSHA", name = sha, load = { "SCRIPT", "LOAD" }, from = sha }
  if self.form ~= "scripts" and functions and (" " .. functions .. " "):find(" " .. operation .. " ", 1, true) then
    local name = library .. "_" .. operation
    how = { call = "FCALL", name = name, load = { "FUNCTION", "LOAD", "REPLACE" }, from = library }
  end
  self.named[operation] = how
  return how
end

--- What a library or script is loaded from. It is kept compressed; Lua has nothing for that, every system has gzip.
function JQ:source(how)
  local key = self:command("HGET", self.manifest .. ":manifest", "sources")
  local kept = self:command("HGET", key, how.from)
  if not kept then
    return nil
  end
  local name = os.tmpname()
  local file = assert(io.open(name, "wb"))
  file:write(kept)
  file:close()
  local pipe = assert(io.popen("gzip -dc < " .. name, "r"))
  local source = pipe:read("*a")
  pipe:close()
  os.remove(name)
  return source
end

function JQ:evaluate(operation, ...)
  local how = self.named[operation] or self:name(operation)
  local sent = { how.name, 2, self.namespace, self.namespace .. ":meta", ... }
  local ok, reply = pcall(self.command, self, how.call, unpack(sent))
  if ok then
    return reply
  elseif not (reply:find("^NOSCRIPT") or reply:find("^ERR Function not found")) then
    error(reply, 0)
  end
  local source = self:source(how)
  if not source then
    how = self:name(operation) -- an old version that was taken away
    source = self:source(how)
  end
  local load = { unpack(how.load) }
  load[#load + 1] = source
  self:command(unpack(load))
  sent[1] = how.name
  return self:command(how.call, unpack(sent))
end

--- Calls an operation. A lost connection says nothing about whether it was carried out: the same call is sent again,
--- which is safe by tokens. Of an error reply the text is raised.
---@param ... string texts (ids), and what `pack` gives
function JQ:call(operation, ...)
  local deadline, is_renewed = socket.gettime() + REPEAT_FOR_S, false
  while true do
    local ok, reply = pcall(self.evaluate, self, operation, ...)
    if ok then
      return reply
    end
    local code = tostring(reply):match("^(%u+) ")
    if code == "VERSION" and not is_renewed then
      -- Another version may have set the namespace up since: its manifest names scripts that know the schema.
      self.named[operation], is_renewed = nil, true
    elseif not (PASSES[code] or self.is_lost) or socket.gettime() > deadline then
      error(reply, 0)
    else
      socket.sleep(0.1)
      if self.is_lost then
        pcall(self.close, self)
        pcall(self.open, self)
      end
    end
  end
end

function JQ:close()
  self.connection.network.socket:close()
end

-- Enqueue, look [3, 4] ---------------------------------------------------------------------------------

---@param jobs table[] {{spec, argument}, ...}
---@return table {id, created, id, created, ...}
function JQ:enqueue_many(jobs)
  local sent = { M.pack({ request = M.token() }) }
  for _, job in ipairs(jobs) do
    sent[#sent + 1] = M.pack(job[1])
    sent[#sent + 1] = M.pack(job[2])
  end
  return self:call("enqueue", unpack(sent))
end

---@return string id
function JQ:enqueue(name, argument, options)
  local spec = { name = name }
  for field, value in pairs(options or {}) do
    spec[field] = value
  end
  return self:enqueue_many({ { spec, argument } })[1]
end

---@return table? document
function JQ:get(id)
  local bytes = self:call("get", id)[1]
  return bytes and M.unpack(bytes)
end

---@return string state
---@return any result
function JQ:result(id)
  local reply = self:call("result", id)
  return reply[1], reply[2] and M.unpack(reply[2])
end

---@return string the state it was in
function JQ:cancel(id)
  return self:call("cancel", M.pack({ ids = { id } }))[1]
end

-- Work [4, 5] ------------------------------------------------------------------------------------------

local Job = {}
Job.__index = Job

--- Renews the lease. A handler that takes long calls this, or `progress`, more often than the job's timeout. Raises
--- `gone` when the job is ours no longer: let it through.
function Job:beat(notes, ...)
  local spec = { worker = self.worker, jobs = { { self.id, self.token, notes } } }
  local answer = self.jq:call("heartbeat", M.pack(spec), ...)[1]
  if type(answer) ~= "number" then
    error({ gone = answer }, 0)
  end
end

--- Says how far it is; with a checkpoint, that is the argument of the next attempt, should there be one.
---@param progress number
---@param message? string
---@param checkpoint? any
function Job:progress(progress, message, checkpoint)
  if checkpoint == nil then
    self:beat({ progress = progress, message = message })
  else
    self:beat({ progress = progress, message = message, argument = 0 }, M.pack(checkpoint))
  end
end

--- Runs a handler. An error {message =, group =, retry = false} is a failure with these fields, any other is its text.
---@return string? outcome nil when the job is ours no longer
---@return string? blob
local function attempt(handlers, job, argument)
  local outcome = { id = job.id, token = job.token, type = "success" }
  local ok, result = pcall(function()
    local handler = handlers[job.name] or error("no handler for " .. job.name, 0)
    return M.pack(handler(M.unpack(argument), job))
  end)
  if ok then
    return M.pack(outcome), result
  end
  local problem = type(result) == "table" and result or { message = tostring(result) }
  if problem.gone then
    return nil
  end
  outcome.type, outcome.message, outcome.group = "failure", problem.message, problem.group
  outcome.should_retry = problem.retry ~= false
  return M.pack(outcome), M.pack(nil)
end

--- The name of the channel of all who want these queues.
---@param queues string[]
---@return string
function M.channel_of(queues)
  local sorted = { unpack(queues) }
  table.sort(sorted)
  local text = table.concat(sorted, "\n"):gsub("'", "'\\''")
  local pipe = io.popen("printf %s '" .. text .. "' | sha1sum")
  local digest = pipe:read(16)
  pipe:close()
  return "q-" .. digest
end

--- Runs jobs until `is_over`, which is asked before each job; one that came already is given back.
---@param handlers table name -> function(argument, job) result
---@param options? {queues?: string|string[], is_over?: (fun(): boolean)}
function JQ:work(handlers, options)
  options = options or {}
  local queues = options.queues
  if not queues then
    queues = {}
    for name in pairs(handlers) do
      queues[#queues + 1] = name
    end
    table.sort(queues)
  end
  local is_over = options.is_over or function()
    return false
  end
  local worker = "lua-" .. M.token() -- unique, or others would answer for us
  local channel = M.channel_of(type(queues) == "table" and queues or { queues })
  local function pick()
    return { queues = queues, request = M.token(), wait = { on = channel, ms = SLEEP_MS } }
  end
  local picked
  while not is_over() do
    if not picked then
      local spec = pick()
      spec.worker = worker
      picked = self:call("pick", M.pack(spec))
    end
    local next_ms, document, argument = unpack(picked)
    picked = nil
    if document then
      local job = setmetatable(M.unpack(document), Job)
      job.jq, job.worker = self, worker
      local outcome, blob = attempt(handlers, job, argument)
      if outcome then
        -- The finish brings the next job, or puts us to sleep: behind its answer stands what a pick gives.
        local reply = self:call("finish", M.pack({ worker = worker, pick = pick() }), outcome, blob)
        picked = { unpack(reply, 2) }
      end
    else
      -- However it ends, the next thing is to pick again.
      pcall(self.command, self, "BZPOPMIN", self.namespace .. ":wake:" .. channel, next_ms / 1000)
    end
  end
  if picked and picked[2] then
    local job = M.unpack(picked[2])
    self:call("release", M.pack({ worker = worker, jobs = { { job.id, job.token } } }))
  end
end

return M
