local msgpack = require "support.msgpack"
local space = require "support.space"
local system = require "support.system"

local NIL = msgpack.NIL

describe("what follows a job and belongs to another partition", function()
  local jqs = system.each(3)

  -- The partition that has the bucket of a value, as jqmaster system --key tells them: 1019, 148, 241.
  local BUCKETS = { k = 1019, other = 148, s = 241 }

  --- A record by which partition 0 has all buckets, but for some.
  local function record(generation, homes, more)
    local partitions, buckets = {}, {}
    for i = 0, 2 do
      partitions[i + 1] = { jqs[i].name, "active" }
    end
    for i = 1, 1024 do
      buckets[i] = 0
    end
    for value, home in pairs(homes) do
      buckets[BUCKETS[value] + 1] = home
    end
    return msgpack.pack(space.with({ format = 1, generation = generation, partitions = partitions, buckets = buckets },
      more))
  end
  local function tell(partition, ...)
    jqs[partition]:call("system", {}, record(...))
  end
  local function tell_all(...)
    for i = 0, 2 do
      tell(i, ...)
    end
  end
  before_each(function()
    tell_all(2, { k = 1, other = 2 })
  end)

  local function keyed(more)
    return space.with({ name = "b", unique = "k" }, more)
  end
  --- The answer to the end of a job of a partition that has these follow it.
  local function followed(partition, ...)
    jqs[partition]:enqueue("a")
    local job = jqs[partition]:take("a")
    return jqs[partition]:call("finish", { worker = "worker" },
      { id = job.id, token = job.token, type = "success", enqueue = select("#", ...) / 2 }, NIL, ...)[1]
  end
  local function waiting(partition)
    return jqs[partition]:pick_ids({ queues = "b", count = 100 })
  end
  local function nothing_left()
    for i = 0, 2 do
      assert.are.same({}, jqs[i]:redis("ZRANGE", jqs[i].name .. ":outboxes", 0, -1))
      assert.are.equal(0, jqs[i]:redis("EXISTS", jqs[i].name .. ":onward-jobs"))
    end
  end

  it("is made there", function()
    assert.are.same({ "done", "", 0 }, followed(0, keyed({ priority = 3 }), "\7"))
    assert.are.equal(1, jqs:settle())
    local job = jqs[1]:get(waiting(1)[1])
    assert.are.same({ "k", 3, 7 }, { job.unique, job.priority, job.argument })
    nothing_left()
    assert.are.same({}, waiting(0))
  end)
  it("is made here where it belongs here", function()
    local answer = followed(1, keyed(), NIL)
    assert.are.same({ answer[2] }, waiting(1))
    assert.are.same({ "done", 1 }, { answer[1], answer[3] })
  end)
  it("is made where the route of its queue leads", function()
    tell_all(3, { k = 1 }, { routes = { b = "argument.customer" } })
    local customer = msgpack.pack({ customer = "k" })
    local answer = followed(0, { name = "b" }, customer, { name = "b" }, msgpack.pack({ customer = "s" }))
    assert.are.same({ "", 0, 1 }, { answer[2], answer[3], answer[5] })
    jqs:settle()
    assert.are.equal(1, #waiting(0))
    assert.are.same({ customer = "k" }, jqs[1]:get(waiting(1)[1]).argument)
  end)
  it("is not made where another has its key", function()
    local id = jqs[1]:enqueue(keyed())
    followed(0, keyed({ if_exists = "replace", priority = 5 }), "\7")
    jqs:settle()
    assert.are.same({ 5, 7 }, { jqs[1]:get(id).priority, jqs[1]:get(id).argument })
    assert.are.same({ id }, waiting(1))
    nothing_left()
  end)
  it("is made once, however often and late its letter comes", function()
    followed(0, keyed(), NIL)
    local first = jqs:letters(0)
    local made = jqs[1]:call("deliver", first[1][2])[1]
    assert.are.equal("made ", made:sub(1, 5))
    jqs[1]:succeed(jqs[1]:take("b"))
    assert.are.equal(made, jqs[1]:call("deliver", first[1][2])[1])
    jqs:pass(5)
    assert.are.equal(1, jqs:settle())
    nothing_left()
    followed(0, { name = "b", unique = "k" }, NIL)
    jqs:settle()
    assert.are.equal("old", jqs[1]:call("deliver", first[1][2])[1])
    assert.are.equal(1, #waiting(1))
    assert.are.equal(1, jqs[1]:redis("ZCARD", jqs[1].name .. ":brought:00"))
  end)
  it("waits for a partition that is away, and its delay and end count from when it came", function()
    followed(0, keyed({ delay = 60 }), NIL, { name = "b", unique = "other", expires_in = 60 }, NIL)
    jqs:pass(50)
    jqs:settle()
    local id = jqs[1]:call("jobs", { where = { queue = "b" } })
    assert.are.equal("scheduled", msgpack.unpack(id[2]).status)
    jqs:pass(11)
    jqs:settle()
    assert.are.equal(1, #waiting(1))
    assert.are.equal("error", msgpack.unpack(jqs[2]:call("jobs", { where = { queue = "b" } })[2]).status)
  end)
  it("may depend on jobs by their ids, not on those beside it", function()
    local there = jqs[2]:enqueue("c")
    followed(0, keyed({ depends = { there } }), NIL)
    jqs:settle()
    assert.are.same({}, waiting(1))
    jqs[2]:succeed(jqs[2]:take("c"))
    jqs:settle()
    assert.are.equal(1, #waiting(1))

    local problem = ": one of the two belongs to another partition, and is made there"
    local function refuses(path, more, ...)
      jqs[0]:enqueue("a")
      local job = jqs[0]:take("a")
      jqs[0]:refuses("INVALID outcomes[0]." .. path .. problem, "finish", { worker = "worker" },
        space.with({ id = job.id, token = job.token, type = "success", enqueue = select("#", ...) / 2 }, more),
        NIL, ...)
    end
    refuses("enqueue[1].depends[0]", {}, keyed(), NIL, { name = "b", depends = { 0 } }, NIL)
    refuses("enqueue[1].depends[0]", {}, { name = "b" }, NIL, keyed({ depends = { 0 } }), NIL)
    refuses("resume.depends[0]", { resume = { depends = { 0 } } }, keyed(), NIL)
  end)

  describe("while buckets move", function()
    local MOVED = { former = { [BUCKETS.k] = 1 } }

    it("is asked for where its key may be held, and made where its bucket is", function()
      tell_all(3, { k = 2 }, MOVED)
      followed(0, keyed(), NIL)
      assert.are.equal(2, jqs:settle())
      assert.are.equal(1, #waiting(2))
      nothing_left()
    end)
    it("is not made where its key is held behind", function()
      local id = jqs[1]:enqueue(keyed())
      tell_all(3, { k = 2 }, MOVED)
      followed(0, keyed({ if_exists = "replace", priority = 5 }), NIL)
      assert.are.equal(1, jqs:settle())
      assert.are.equal(5, jqs[1]:get(id).priority)
      assert.are.same({}, waiting(2))
      nothing_left()
    end)
    it("is asked for where it was asked for before, which may have made it", function()
      followed(0, keyed(), NIL)
      local lost = jqs:letters(0)
      jqs[1]:call("deliver", lost[1][2])
      assert.are.equal(1, #waiting(1))
      tell_all(3, { k = 2 }) -- so long ago that nothing is left of the key
      jqs:pass(5)
      assert.are.equal(1, jqs:settle())
      assert.are.same({}, waiting(2))
      nothing_left()
    end)
    it("is not made by an old letter", function()
      followed(0, keyed(), NIL)
      local late = jqs:letters(0)
      tell_all(3, { k = 2 }, MOVED)
      assert.are.equal("ROUTE letters[0].generation: this is generation 3 of the system, the letter is of 2",
        jqs[1]:call("deliver", late[1][2])[1])
      jqs:pass(5)
      jqs:settle()
      assert.are.equal(1, #waiting(2))
      assert.are.equal("ROUTE", jqs[1]:call("deliver", late[1][2])[1]:sub(1, 5))
    end)
    it("waits until both partitions know the record", function()
      tell(0, 3, { k = 1 })
      followed(0, keyed(), NIL)
      jqs:settle()
      assert.are.same({}, waiting(1))
      tell(1, 3, { k = 1 })
      jqs:pass(1)
      jqs:settle()
      assert.are.equal(1, #waiting(1))
      tell(1, 4, { k = 2 }, MOVED)
      followed(0, { name = "b", unique = "k" }, NIL)
      jqs:settle()
      tell(0, 4, { k = 2 }, MOVED)
      tell(2, 4, { k = 2 }, MOVED)
      jqs:pass(5)
      jqs:settle()
      assert.are.same({}, waiting(2), "its key is the first's")
      nothing_left()
    end)
    it("is made here when its bucket came, and the one that had it knows of no key", function()
      tell_all(3, { k = 0 }, MOVED)
      assert.are.same({ "done", "", 0 }, followed(0, keyed(), NIL))
      jqs:settle()
      assert.are.equal(1, #waiting(0))
      nothing_left()
    end)
    it("is not made anew where its key is held here, and its bucket has gone", function()
      tell_all(3, { k = 0 })
      local id = jqs[0]:enqueue(keyed())
      tell_all(4, { k = 1 }, { former = { [BUCKETS.k] = 0 } })
      assert.are.same({ "done", id, 0 }, followed(0, keyed(), NIL))
      nothing_left()
    end)
    it("waits where jobs of a route are about to move", function()
      local routes = { b = "argument.customer" }
      tell_all(3, {}, { routes = routes, moving = { BUCKETS.k } })
      followed(0, { name = "b" }, msgpack.pack({ customer = "k" }))
      followed(1, { name = "b" }, msgpack.pack({ customer = "k" }))
      jqs:settle()
      assert.are.same({}, waiting(0))
      tell_all(4, { k = 2 }, { routes = routes, former = { [BUCKETS.k] = 0 } })
      jqs:pass(5)
      jqs:settle()
      assert.are.equal(2, #waiting(2))
      nothing_left()
    end)
    it("goes to another when the one that it was for is lost", function()
      followed(0, keyed(), NIL)
      jqs:letters(0)
      local partitions = {}
      for i = 0, 2 do
        partitions[i + 1] = { jqs[i].name, i == 1 and "lost" or "active" }
      end
      for _, i in ipairs({ 0, 2 }) do
        tell(i, 3, { k = 2 }, { partitions = partitions })
      end
      jqs:carry(0, jqs:letters(0))
      jqs:carry(0, jqs:letters(0))
      assert.are.equal(1, #waiting(2))
      nothing_left()
    end)
  end)

  it("waits where the partition of its parent has lost the system's record", function()
    followed(0, keyed(), NIL)
    local found = jqs:letters(0)
    local lost = jqs[0]:redis("GET", jqs[0].name .. ":system")
    jqs[0]:redis("DEL", jqs[0].name .. ":system")
    jqs[0]:call("outbox", { courier = "c" }, found[1][2], "free")
    jqs:pass(5)
    jqs:settle()
    assert.are.same({}, waiting(0))
    jqs[0]:redis("SET", jqs[0].name .. ":system", lost)
    jqs:pass(5)
    jqs:settle()
    assert.are.equal(1, #waiting(1))
    nothing_left()
  end)
  it("is refused where the system's record is of a later format", function()
    jqs[0]:redis("SET", jqs[0].name .. ":system", msgpack.pack({ format = 2 }))
    jqs[0]:enqueue("a")
    local job = jqs[0]:take("a")
    jqs[0]:refuses("VERSION " .. jqs[0].name .. ":system: this record of a system has another format than 1",
      "finish", { worker = "worker" }, { id = job.id, token = job.token, type = "success", enqueue = 1 }, NIL,
      keyed(), NIL)
  end)
  it("waits for longer where its letter is refused", function()
    followed(0, keyed(), NIL)
    local found = jqs:letters(0)
    jqs[0]:call("outbox", { courier = "c" }, found[1][2], "INVALID letters[0].kind: an older version")
    assert.are.equal(60000, jqs:letters(0).next_ms)
  end)
end)
