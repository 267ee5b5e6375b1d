local msgpack = require "support.msgpack"
local server = require "support.server"
local space = require "support.space"

-- What a client's user may do, and nothing else; docs/ quotes it:
--   ACL SETUSER jq on >secret ~{jq}* resetchannels &{jq}* <these>
local CALLS = { "evalsha", "fcall", "script|load" }
-- A master, and who else loads, beside that (docs/operating.md).
local LOADS = { "function|load", "function|delete" }
local INNER = {
  "append", "del", "exists", "expire", "get", "hdel", "hexists", "hget", "hgetall", "hkeys", "hlen",
  "hmget", "hscan", "hset", "hvals", "incr", "llen", "lpop", "lrange", "mget", "mset", "pexpire", "pttl", "rpush",
  "sadd", "scan", "set", "setrange", "spublish", "srandmember", "srem", "sscan", "time", "type", "unlink",
  "xadd", "xrange", "zadd", "zcard", "zcount", "zmscore", "zpopmin", "zrange", "zrangebylex", "zrangebyscore", "zrank",
  "zrem", "zremrangebyscore", "zscore",
}
-- Blocking for work, and listening to the ends of watched jobs.
local WAITING = { "bzpopmin", "ssubscribe", "sunsubscribe" }

local SCRIPTS = {}
for name in io.popen('ls "' .. os.getenv("JQ_SCRIPTS") .. '/server"'):lines() do
  if name ~= "library.lua" then
    SCRIPTS[#SCRIPTS + 1] = name:match("^(.*)%.lua$")
  end
end

-- setup mixes it into the secret of the namespace when it may.
local OPTIONAL = "info"

describe("a user of least privilege", function()
  local jq, admin, user

  local function grant(more)
    local rules = { "SETUSER", "jq-spec", "reset", "on", ">secret", "~" .. jq.name .. "*", "resetchannels",
      "&" .. jq.name .. "*" }
    for _, list in ipairs({ CALLS, INNER, WAITING, more or {} }) do
      for _, command in ipairs(list) do
        rules[#rules + 1] = "+" .. command
      end
    end
    admin:call_list("ACL", rules)
  end

  before_each(function()
    admin = server.shared()
    jq = space.new({ clock = "server" })
    grant()
    for _, name in ipairs(SCRIPTS) do
      server.sha("server", name)
    end
    user = server.connect()
    user:call("AUTH", "jq-spec", "secret")
    jq.connection = user
  end)
  after_each(function()
    jq.connection = admin
    user:close()
    admin:call("ACL", "DELUSER", "jq-spec")
    jq:close()
  end)

  it("may do exactly what the scripts call", function()
    local is_command = {}
    for _, name in ipairs(admin:call("COMMAND", "LIST")) do
      is_command[name:upper()] = true
    end
    local called = {}
    for _, script in ipairs(SCRIPTS) do
      for word in server.source("server", script):gmatch("[\"']([A-Z]+)[\"']") do
        if is_command[word] then
          called[word:lower()] = true
        end
      end
    end
    local names = {}
    for name in pairs(called) do
      names[#names + 1] = name
    end
    table.sort(names)
    for i, name in ipairs(names) do
      if name == OPTIONAL then
        table.remove(names, i)
      end
    end
    assert.are.same(INNER, names)
  end)
  it("may load the scripts", function()
    for _, name in ipairs(SCRIPTS) do
      assert.are.equal(server.sha("server", name), user:call("SCRIPT", "LOAD", server.source("server", name)))
    end
  end)
  it("may load the library and delete it if that is granted, and else not", function()
    local source = server.source("server", "library")
    local function refused(...)
      local ok, message = pcall(user.call, user, ...)
      return not ok and message:find("^NOPERM") ~= nil
    end
    assert.is_true(refused("FUNCTION", "LOAD", "REPLACE", source))
    grant(LOADS)
    user:close()
    user = server.connect()
    user:call("AUTH", "jq-spec", "secret")
    local name = user:call("FUNCTION", "LOAD", "REPLACE", source)
    user:call("FUNCTION", "DELETE", name)
    user:call("FUNCTION", "LOAD", source)
    assert.is_true(refused("FUNCTION", "FLUSH"))
    assert.is_true(refused("FUNCTION", "LIST"))
  end)
  for _, form in ipairs({ "functions", "scripts" }) do
    it("may set up, and live the whole life of a job by " .. form, function()
      jq.form = form
      assert.are.equal(5, jq:call("setup"))
      jq:set({ retry_base = 0, result_grace = 0 })
      jq:queue({ name = "a", max_waiting = 100 })
      local ids = jq:enqueue_all({ name = "a", keep_result = true }, "a", "a", { name = "a", delay = 1000,
        expires_in = 2000 }, { name = "a", priority = -1 })
      jq:call("enqueue", { request = "r" }, { name = "b" }, msgpack.NIL)
      jq:call("watch", unpack(ids))
      local jobs = jq:pick({ queues = "a", count = 3, request = "r" })
      assert.are.same({ ids[5], ids[1], ids[2] }, space.ids(jobs))
      jq:heartbeat(jobs[1])
      assert.are.equal("done", jq:succeed(jobs[2], "\163yes"))
      assert.are.equal("retrying", jq:fail(jobs[3], { message = "no" }, "\163bad"))
      assert.are.equal("scheduled", jq:release(jobs[1], 100))
      assert.are.same({ "done", "\163yes" }, jq:call("result", jobs[2].id))
      assert.are.equal("scheduled", jq:cancel(jobs[1].id))
      assert.are.equal("done", jq:status(jobs[2].id))
      assert.are.equal(2, #jq:pick({ queues = { "a", "*" }, count = 2, order = "round_robin" }))
      jq:pick({ queues = "b*", order = "shuffled" })
      jq:tick()
      assert.are.same({}, jq:audit())
    end)
  end
  it("may enqueue unique and dependent jobs, change them, and let jobs follow", function()
    local first = jq:enqueue({ name = "a", unique = "k", unique_for = 1, tags = { "t" } })
    local second = jq:enqueue({ name = "b", depends = { first }, expires_in = 100 })
    jq:call("enqueue", { name = "a", unique = "k", if_exists = "replace", priority = 1 }, msgpack.NIL)
    jq:call("change", { id = second, delay = 0, tags = { "u" } }, "")
    local job = jq:take("a")
    jq:call("heartbeat", { worker = "worker", jobs = { { job.id, job.token, { progress = 1, argument = 0 } } } }, "")
    jq:call("kick", { ids = { job.id } })
    job = jq:take("a")
    jq:call("finish", { worker = "worker" }, { id = job.id, token = job.token, type = "success", enqueue = 1,
      move = { name = "c" } }, msgpack.NIL, { name = "d", depends = { second } }, msgpack.NIL)
    jq:call("depend", { id = second, remove = { first } })
    jq:call("history", job.id)
    jq:call("cancel", { ids = { second }, dependents = "cancel" })
    jq:settle()
    assert.are.same({}, jq:audit())
  end)
  it("may register, be given jobs and leave", function()
    local worker = jq:register({ url = "http://w/", max_jobs = 3 })
    local other = jq:register({ queues = "a*" })
    jq:enqueue_all("a", "a", "a", "b")
    local jobs = jq:assign({ limit = 3 })
    assert.are.equal(3, #jobs)
    jq:call("refuse", { worker = worker, jobs = { jq:held(jobs[1]) }, why = "unknown" })
    jq:call("refuse", { worker = worker, jobs = { jq:held(jobs[2]) }, why = "unreachable" })
    jq:heartbeat(jobs[3], worker)
    jq:register({ url = "http://w/", max_jobs = 3 })
    jq:call("unregister", { worker = other })
    assert.are.equal("ready", jq:worker(jq:register({ url = "http://w/", max_jobs = 3 })).state)
    jq:call("queues", {})
    assert.are.same({}, jq:audit())
  end)
  it("may live under constraints", function()
    jq:enqueue("a")
    local running = jq:take("a")
    jq:call("constrain", { id = "c", by = "argument", concurrency = 1, rate = { limit = 2, period = 60 } },
      msgpack.pack({ name = "*" }))
    jq:succeed(running)
    jq:call("queue", { name = "b", fair = { { by = "argument", weights = { x = 2 } } } })
    local id
    for _ = 1, 4 do
      id = jq:enqueue("b")
    end
    jq:succeed(jq:take("b"))
    jq:succeed(jq:take("b"))
    assert.are.same({}, jq:pick_ids("b"))
    jq:call("explain", id)
    jq:call("constraints", {})
    jq:call("usage", { id = "c" })
    jq:call("hold", { id = "c", by = "x", seconds = 1 })
    jq:call("unconstrain", { id = "c" })
    jq:succeed(jq:take("b"))
    assert.are.same({}, jq:audit())
  end)
  it("may look for jobs, retry, discard and forget", function()
    local id = jq:enqueue({ name = "a", max_retry = 0, tags = { "t" } })
    jq:fail(jq:take("a"))
    jq:call("jobs", { where = { tag = "t" } })
    jq:call("jobs", { newest = true, cursor = jq:call("jobs", { count = 1 })[1] })
    assert.are.equal(2, #jq:call("failures", {}))
    assert.are.equal(2, #jq:call("tags", { top = 5 }))
    jq:call("retry", { where = { group = "other" } })
    assert.are.same({ "queued" }, jq:call("discard", { ids = { id } }))
    assert.are.equal(1, jq:call("forget", { queue = "a" }))
    assert.are.same({}, jq:audit())
  end)
  it("may copy a namespace", function()
    local id = jq:enqueue("a")
    local records = jq:call("export", { count = 1000 })
    assert.are.equal("", table.remove(records, 1))
    for _, key in ipairs(admin:call("KEYS", jq.name .. ":*")) do
      admin:call("DEL", key)
    end
    jq:call("import", unpack(records))
    assert.are.equal("queued", jq:status(id))
    assert.are.same({}, jq:audit())
  end)
  it("may have schedules", function()
    local spec = { id = "s", every = 0.1, job = { name = "a", unique = "u" } }
    jq:call("schedule", spec, msgpack.NIL)
    local id
    for _ = 1, 100000 do -- a tenth of a second's worth
      id = jq:pick_ids("a")[1]
      if id then
        break
      end
    end
    assert.are.equal("s", jq:get(id).schedule)
    spec.cron, spec.every = "@hourly", nil
    jq:call("schedule", spec, msgpack.NIL)
    jq:call("schedules", { next = 5 })
    assert.are.equal(1, jq:call("unschedule", { id = "s" }))
    assert.are.same({}, jq:audit())
  end)
  it("may have events, ask workers and give queues settings of their own", function()
    jq:set({ events_max = 10 })
    jq:queue({ name = "a", set = { done_max = 5 } })
    jq:queue({ name = "a", unset = { "done_max" } })
    local id = jq:enqueue("a")
    jq:call("track", { ids = { id } })
    local worker = jq:register({})
    jq:call("worker", { worker = worker, request = "quiet" })
    jq:call("heartbeat", { worker = worker, jobs = {}, control = true })
    jq:succeed(jq:take("a"))
    jq:set({ events_max = 0 })
    assert.are.same({}, jq:audit())
  end)
  it("may have keys of the HTTP API, and a trail", function()
    jq:call("grant", { id = "0123456789ab", digest = ("ab"):rep(32), name = "n", roles = { "admin" }, actor = "ann" })
    jq:call("touch", { ids = { "0123456789ab" } })
    jq:enqueue_all("a", "a")
    local cursor = jq:call("cancel", { where = {}, count = 1, actor = "ann" })[1]
    jq:call("cancel", { where = {}, count = 1, cursor = cursor, actor = "ann" })
    assert.are.equal(2, #jq:call("keys", {}))
    jq:call("revoke", { id = "0123456789ab", actor = "ann" })
    assert.are.equal(4, #jq:call("trail", {}))
    jq:set({ trail_max = 1 })
    assert.are.equal(2, #jq:call("trail", {}))
    jq:call("mark", { text = "v1", time_ms = 5, actor = "ann" }) -- too old to be kept
    jq:call("mark", { text = "v2" })
    assert.are.equal(2, #jq:call("marks", {}))
    assert.are.same({}, jq:audit())
  end)
  it("may wait for work and for ends", function()
    jq:sleep("w1", "c", "a")
    local listener = server.connect()
    listener:call("AUTH", "jq-spec", "secret")
    listener:call("SSUBSCRIBE", jq.name .. ":ended")
    local id = jq:enqueue("a")
    assert.are.equal(jq.name .. ":wake:c", user:call("BZPOPMIN", jq.name .. ":wake:c", 1)[1])
    jq:call("watch", id)
    jq:succeed(jq:take("a"))
    assert.are.equal(id .. " done", listener:read()[3])
    listener:close()
  end)
  it("may read the manifest", function()
    assert.is_nil(user:call("HGET", jq.name .. ":manifest", "version"))
  end)
  it("may not touch another namespace", function()
    local other = space.new({ clock = "server" })
    other.connection = user
    for _, form in ipairs({ "functions", "scripts" }) do
      other.form = form
      for _, call in ipairs({ { "tick", {} }, { "enqueue", { name = "a" }, msgpack.NIL }, { "setup" } }) do
        local ok, message = pcall(other.call, other, unpack(call))
        assert.is_false(ok)
        assert.is_truthy(message:find("^NOPERM"))
      end
    end
    other.connection = admin
    other:close()
  end)
  it("may not empty the server, read its settings or run scripts of its own", function()
    for _, command in ipairs({ { "FLUSHALL" }, { "CONFIG", "GET", "*" }, { "EVAL", "return 1", 0 },
      { "KEYS", "*" }, { "SCRIPT", "FLUSH" }, { "ACL", "LIST" } }) do
      local ok, message = pcall(user.call, user, unpack(command))
      assert.is_false(ok)
      assert.is_truthy(message:find("^NOPERM"))
    end
  end)
end)

describe("the scripts", function()
  it("that only read may run where nothing may be written, and no others", function()
    local jq = space.new({ clock = "server" })
    for _, name in ipairs(SCRIPTS) do
      local head = io.open("scripts/" .. name .. ".lua"):read("*a")
      -- Whatever it answers: to scripts of this flag Redis refuses in all specs what would write.
      local ok, message = pcall(jq.redis, jq, "EVALSHA_RO", server.sha("server", name), 2, jq.name, jq.name .. ":meta",
        msgpack.pack({}))
      local is_refused = not ok and message:find("Can not execute a script with write flag", 1, true) ~= nil
      assert.are.equal(head:find("\n-- @flags  read") == nil, is_refused, name)
    end
    jq:close()
  end)
  it("read the server's clock when they are not built for tests", function()
    local jq = space.new({ clock = "server" })
    local time = jq:redis("TIME")
    local created_ms = jq:get(jq:enqueue("a")).created_ms
    assert.is_true(created_ms >= time[1] * 1000 + math.floor(time[2] / 1000))
    time = jq:redis("TIME")
    assert.is_true(created_ms <= time[1] * 1000 + math.floor(time[2] / 1000))
    assert.is_nil(server.source("server", "enqueue"):find(":clock", 1, true))
    jq:close()
  end)
end)
