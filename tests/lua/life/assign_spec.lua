local msgpack = require "support.msgpack"
local space = require "support.space"

describe("assign", function()
  local jq = space.each()

  it("gives a job with its worker, url, document and argument", function()
    local worker = jq:register({ url = "http://w/x" })
    local id = jq:enqueue({ name = "mail", timeout = 2 }, "\163abc")
    local reply = jq:call("assign", { master = "m" })
    assert.are.equal(7, #reply)
    assert.are.same({ worker, "http://w/x", "", "" }, { reply[2], reply[3], reply[4], reply[5] })
    local document = msgpack.unpack(reply[6])
    assert.are.same({ id = id, token = document.token, name = "mail", queue = "mail", priority = 0, attempt = 1,
      retry_count = 0, timeout = 2 }, document)
    assert.are.equal("\163abc", reply[7])
  end)
  it("gives a worker no more than max_jobs", function()
    jq:register({ url = "http://w/", max_jobs = 2 })
    jq:enqueue_all("a", "a", "a")
    assert.are.equal(2, #jq:assign())
    assert.are.equal(0, #jq:assign())
  end)
  it("spreads jobs evenly over equal workers", function()
    for i = 1, 5 do
      jq:register({ url = "http://w/" .. i, max_jobs = 10 })
    end
    jq:enqueue_many({ name = "a" }, 20)
    local held = {}
    for _, job in ipairs(jq:assign()) do
      held[job.to] = (held[job.to] or 0) + 1
    end
    for _, count in pairs(held) do
      assert.are.equal(4, count)
    end
  end)
  it("gives the least loaded of two pools the job that both may have", function()
    local one = jq:register({ url = "http://w/1", queues = "a", max_jobs = 2 })
    local two = jq:register({ url = "http://w/2", queues = { "a", "b" }, max_jobs = 2 })
    jq:enqueue_many({ name = "a" }, 4)
    local held = { [one] = 0, [two] = 0 }
    for _, job in ipairs(jq:assign({ limit = 2 })) do
      held[job.to] = held[job.to] + 1
    end
    assert.are.same({ [one] = 1, [two] = 1 }, held)
  end)
  it("ends some hundred of them in a call", function()
    jq:register({ url = "http://w/" })
    jq:enqueue_many({ name = "a", expires_in = 1 }, 1000)
    jq:pass(1)
    local jobs = jq:assign()
    assert.are.same({ 0, 0 }, { jobs.next_ms, #jobs })
    assert.is_true(jq:counts("a").error <= 300)
    local good = jq:enqueue({ name = "a", priority = -1 })
    assert.are.same({ good }, space.ids(jq:assign()))
  end)
  it("passes over names that a worker refused, and gives it others", function()
    local worker = jq:register({ url = "http://w/", queues = "q" })
    local unknown = jq:enqueue({ name = "unknown", queue = "q" })
    jq:call("refuse", { worker = worker, jobs = { jq:held(jq:assign()[1]) }, why = "unknown" })
    local known = jq:enqueue({ name = "known", queue = "q" })
    assert.are.same({ known }, space.ids(jq:assign()))
    assert.are.equal("queued", jq:status(unknown))
  end)
  it("asks to be called again while a queue is sorted of which a worker refused names", function()
    local worker = jq:register({ url = "http://w/", queues = "a" })
    jq:enqueue({ name = "b", queue = "a" })
    jq:call("refuse", { worker = worker, jobs = { jq:held(jq:assign()[1]) }, why = "unknown" })
    jq:enqueue_many({ name = "a" }, 100)
    jq:queue({ name = "a", fair = { by = "name" } })
    local calls, reply = 0
    repeat
      calls = calls + 1
      reply = jq:call("assign", { master = "m" })
    until reply[1] ~= 0 or reply[2]
    assert.are.equal(7, #reply) -- next_ms and a job
    assert.is_true(calls > 1)
  end)
  it("passes over those it is called without, and no others", function()
    local one = jq:register({ url = "http://1/", max_jobs = 9 })
    local other = jq:register({ url = "http://2/", max_jobs = 9 })
    jq:enqueue_many({ name = "a" }, 3)
    assert.are.same({}, space.ids(jq:assign({ without = { one, other } })))
    for _, job in ipairs(jq:assign({ limit = 2, without = { one } })) do
      assert.are.equal(other, job.to)
    end
    assert.are.equal(one, jq:assign({ without = { other, "w" .. space.UNKNOWN_ID } })[1].to)
  end)

  describe("request", function()
    local function assign()
      return jq:assign({ request = "r", limit = 2 })
    end

    it("repeated gives the same jobs with the same tokens, and starts nothing", function()
      jq:register({ url = "http://w/1", max_jobs = 5 })
      jq:register({ url = "http://w/2" })
      jq:enqueue_many({ name = "a" }, 3)
      local first = assign()
      local second = jq:unchanged(assign)
      first.next_ms = 0 -- nobody has looked for more
      assert.are.same(first, second)
      assert.are.equal(2, #second)
      assert.are_not.equal(first[1].to, first[2].to)
    end)
    it("repeated leaves out what has ended, and what went with its worker", function()
      local one = jq:register({ url = "http://w/1" })
      jq:register({ url = "http://w/2" })
      jq:enqueue_many({ name = "a" }, 2)
      local jobs = assign()
      jq:succeed(jobs[1].to == one and jobs[2] or jobs[1])
      jq:call("unregister", { worker = one })
      assert.are.same({}, space.ids(assign()))
    end)
  end)
end)
