-- How many queues, names, tags and keys of constraints a namespace takes.
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a namespace takes", function()
  local jq = space.each()

  local function fails_with(expected, script, ...)
    return jq:refuses("FULL " .. expected, script, ...)
  end
  local function enqueue(...)
    return jq:enqueue_all(...)
  end

  describe("so many queues", function()
    before_each(function()
      enqueue("a", "b")
      jq:set({ queues_max = 2 })
    end)

    it("and refuses a job of another", function()
      fails_with('jobs[0].queue: "c" is new, and queues_max (2 queues) is reached', "enqueue",
        { name = "c" }, msgpack.NIL)
      fails_with('jobs[1].queue: "c" is new', "enqueue", { name = "a" }, msgpack.NIL, { name = "c" }, msgpack.NIL)
    end)
    it("but loses nothing that follows, moves or comes of a schedule", function()
      jq:call("schedule", { id = "s", every = 10, job = { name = "d" } }, msgpack.NIL)
      local job = jq:take("a")
      local outcome = { id = job.id, token = jq:token(job), type = "success", enqueue = 1 }
      local answer = jq:call("finish", { worker = "worker" }, outcome, msgpack.NIL, { name = "e" }, msgpack.NIL)
      assert.are.same({ "done", 1 }, { answer[1][1], answer[1][3] })
      job = jq:take("b")
      outcome = { id = job.id, token = jq:token(job), type = "success", move = { name = "f" } }
      assert.are.same({ "queued" }, jq:call("finish", { worker = "worker" }, outcome, msgpack.NIL))
      jq:pass(10)
      jq:settle()
      for _, name in ipairs({ "d", "e", "f" }) do
        assert.are.equal(1, jq:counts(name).queued)
      end
    end)
  end)

  describe("so many names", function()
    local function of_a(name)
      return { name = name, queue = "a" }
    end
    before_each(function()
      enqueue("a", of_a("x"))
      jq:set({ names_max = 2 })
    end)

    it("and refuses a job of another", function()
      fails_with('jobs[0].name: "y" is new in its queue, and names_max (2 pairs of queue and name) is reached',
        "enqueue", of_a("y"), msgpack.NIL)
    end)
    it("of one call together", function()
      jq:set({ names_max = 3 })
      fails_with('jobs[2].name: "z" is new', "enqueue", of_a("y"), msgpack.NIL, of_a("y"), msgpack.NIL, of_a("z"),
        msgpack.NIL)
      assert.are.equal(2, #enqueue(of_a("y"), of_a("y")))
      fails_with('jobs[0].name: "z" is new', "enqueue", of_a("z"), msgpack.NIL)
    end)
  end)

  describe("so many tags", function()
    before_each(function()
      enqueue({ name = "a", tags = { "s", "t" } })
      jq:set({ tags_max = 2 })
    end)

    it("and refuses a job with another", function()
      fails_with('jobs[0].tags[1]: "u" is new, and tags_max (2 tags) is reached', "enqueue",
        { name = "a", tags = { "s", "u" } }, msgpack.NIL)
      enqueue({ name = "a", tags = { "t", "s" } })
    end)
    it("of one call together", function()
      jq:set({ tags_max = 3 })
      fails_with("jobs[1].tags[0]", "enqueue", { name = "a", tags = { "u" } }, msgpack.NIL,
        { name = "a", tags = { "v" } }, msgpack.NIL)
      enqueue({ name = "a", tags = { "u" } }, { name = "a", tags = { "u" } })
    end)
    it("but loses nothing that follows or comes of a schedule", function()
      jq:call("schedule", { id = "s", every = 10, job = { name = "d", tags = { "u" } } }, msgpack.NIL)
      local job = jq:take("a")
      local outcome = { id = job.id, token = jq:token(job), type = "success", enqueue = 1 }
      jq:call("finish", { worker = "worker" }, outcome, msgpack.NIL, { name = "e", tags = { "v" } }, msgpack.NIL)
      jq:pass(10)
      jq:settle()
      assert.are.same({ "s", "t", "u", "v" }, jq:redis("ZRANGE", jq.name .. ":tag-names", 0, -1))
    end)
  end)

  describe("what is asked for without a further command", function()
    local function commands_of(spec)
      return jq:commands(function()
        jq:enqueue(spec)
      end)
    end
    it("as long as no bound is near", function()
      local spec = { name = "x", queue = "a", tags = { "t" } }
      jq:enqueue(spec)
      local few = commands_of(spec)
      jq:set({ tags_max = 2 })
      assert.is_true(commands_of(spec) > few)
      jq:set({ tags_max = 1000000 })
      assert.are.equal(few, commands_of(spec))
    end)
  end)
end)
