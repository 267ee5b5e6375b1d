local msgpack = require "support.msgpack"
local space = require "support.space"

local NIL = msgpack.NIL

describe("when Redis is out of memory", function()
  local jq
  local function set_limit(bytes)
    jq:redis("CONFIG", "SET", "maxmemory", bytes)
  end
  --- The clock's key is the test's own; it needs memory like any other.
  local function pass(seconds)
    set_limit(0)
    jq:pass(seconds)
    set_limit(1)
  end

  local jobs
  before_each(function()
    jq = space.new()
    jq:register({ url = "http://w/", queues = "pushed", max_jobs = 5 })
    jq:enqueue_many({ name = "a", keep_result = true, timeout = 5 }, 20)
    jq:enqueue({ name = "a", delay = 3 })
    jq:enqueue_many({ name = "pushed" }, 3)
    jobs = jq:pick({ queues = "a", count = 10 })
    set_limit(1)
  end)
  after_each(function()
    set_limit(0)
    jq:close()
  end)

  it("enqueue is refused before its request token is noted", function()
    jq:refuses("OOM", "enqueue", { request = "r" }, { name = "a" }, NIL)
    set_limit(0)
    assert.are.equal(2, #jq:call("enqueue", { request = "r" }, { name = "a" }, NIL))
  end)
  for script, spec in pairs({ register = { name = "w", queues = "a" }, queue = { name = "new" } }) do
    it(script .. " is refused", function()
      jq:refuses("OOM", script, spec)
    end)
  end
  it("config can still make room", function()
    jq:succeed(jobs[1])
    jq:set({ done_ttl = 0, result_ttl = 1 })
    pass(10)
    jq:settle()
  end)
  it("a namespace that is set up already can be set up again", function()
    local ok, message = pcall(jq.call, jq, "setup")
    assert.is_true(ok or message:find("^OOM") ~= nil)
  end)
  it("a full system can be drained to the last job", function()
    for _, job in ipairs(jobs) do
      assert.are.equal("done", jq:succeed(job))
    end
    pass(3)
    local count = 0
    while true do
      local job = jq:take("a")
      if not job then
        break
      end
      jq:succeed(job)
      count = count + 1
    end
    assert.are.equal(11, count)
  end)
end)
