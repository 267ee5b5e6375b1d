local msgpack = require "support.msgpack"
local server = require "support.server"
local space = require "support.space"

-- What a client's user may do, and nothing else; docs/ quotes it:
--   ACL SETUSER jq on >secret ~{jq}* resetchannels &{jq}* <these>
local CALLS = { "evalsha", "fcall", "script|load" }
-- A master, and who else loads, beside that (docs/operating.md).
local LOADS = { "function|load", "function|delete" }
local INNER = {
  "append", "del", "exists", "expire", "get", "getrange", "hdel", "hexists", "hget", "hgetall", "hkeys", "hlen",
  "hmget", "hscan", "hset", "hvals", "mget", "mset", "pexpire", "pttl",
  "sadd", "scan", "set", "setrange", "spublish", "srandmember", "srem", "sscan", "strlen", "time", "type", "unlink",
  "xadd", "zadd", "zcard", "zcount", "zmscore", "zpopmin", "zrange", "zrangebylex", "zrangebyscore", "zrank",
  "zrem", "zremrangebyscore", "zscan", "zscore",
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
      assert.are.equal(11, jq:call("setup"))
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
      assert.are.equal(2, #jq:pick({ queues = { "a", "*" }, count = 2, order = "ordered" }))
      jq:pick({ queues = "b*", order = "ordered" })
      jq:tick()
      assert.are.same({}, jq:audit())
    end)
  end
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
