local msgpack = require "support.msgpack"
local space = require "support.space"
local system = require "support.system"

describe("letters", function()
  local jqs = system.each(3)
  local function ask()
    return jqs[1]:enqueue({ name = "b", depends = { jqs[0]:enqueue("a") } })
  end
  local function changed(blob, more)
    return msgpack.pack(space.with(msgpack.unpack(blob), more))
  end
  local function answer(to, blob)
    return jqs[to]:call("deliver", blob)[1]
  end

  it("that are lost are written again", function()
    local id = ask()
    assert.are.equal(1, #jqs:letters(1))
    assert.are.equal(0, #jqs:letters(1))
    assert.are.equal(5000, jqs:letters(1).next_ms)
    jqs:pass(5)
    jqs:settle()
    jqs[0]:succeed(jqs[0]:take("a"))
    assert.are.equal(1, #jqs:letters(0))
    jqs:pass(5)
    jqs:settle()
    assert.are.equal("queued", jqs[1]:status(id))
  end)
  it("about what is waited for are written again once in a while", function()
    ask()
    jqs:settle()
    assert.are.equal(300000, jqs:letters(1).next_ms)
    jqs:pass(300)
    assert.are.equal(1, jqs:settle())
    assert.are.equal(300000, jqs:letters(1).next_ms)
  end)
  it("are all written again when another server took over there, each once #once", function()
    for _ = 1, 250 do
      ask()
    end
    assert.are.equal(250, jqs:settle())
    jqs:pass(10)
    ask()
    local found = jqs:letters(1)
    jqs[1]:call("outbox", { courier = "c", except = { 0 } }, found[1][2], "queued 0123abcd")
    local count = 0
    repeat
      local more = jqs:letters(1)
      for _, letter in ipairs(more) do
        jqs[1]:call("outbox", { courier = "c", except = { 0 } }, letter[2], "queued 0123abcd")
      end
      count = count + #more
    until #more == 0
    assert.are.equal(250, count)
    assert.are.equal(300000, jqs:letters(1).next_ms)
  end)
  it("that come first after a time in which nobody could call end no lease", function()
    local id = jqs[1]:enqueue({ name = "a", timeout = 30 })
    local job = jqs[1]:take("a")
    for _ = 1, 7 do
      jqs:pass(10)
      jqs[1]:heartbeat(job)
    end
    jqs:pass(100)
    jqs[0]:enqueue({ name = "b", depends = { id } })
    jqs:carry(0, jqs:letters(0))
    assert.are.equal("running", jqs[1]:status(id))
  end)
  it("tell of failures to those who came to depend before the clock went back", function()
    local first = jqs[0]:enqueue({ name = "a", max_retry = 0 })
    local id = jqs[1]:enqueue({ name = "b", depends = { first }, if_failed = "run" })
    jqs:pass(-20)
    jqs:settle()
    jqs[0]:fail(jqs[0]:take("a"))
    jqs:settle()
    assert.are.equal("queued", jqs[1]:status(id))
  end)
  it("may come twice and in any order", function()
    local id = ask()
    local follows = jqs:letters(1)
    jqs:carry(1, follows)
    jqs[0]:succeed(jqs[0]:take("a"))
    local ended = jqs:letters(0)
    jqs:carry(0, ended)
    jqs[1]:succeed(jqs[1]:take("b"))
    jqs:carry(1, follows)
    jqs:carry(0, ended)
    jqs:carry(1, follows)
    jqs:settle()
    assert.are.equal("done", jqs[1]:status(id))
    assert.are.equal(0, jqs[0]:redis("EXISTS", jqs[0].name .. ":readers:" .. msgpack.unpack(ended[1][2]).id))
  end)
  it("of a parent that a failover lost do not let anything start", function()
    local id = ask()
    jqs:settle()
    local there = jqs[1]:get(id).depends[1]
    for _, key in ipairs({ "j:" .. there, "a:" .. there, "q:a", "dependents:" .. there, "readers:" .. there }) do
      jqs[0]:redis("DEL", jqs[0].name .. ":" .. key)
    end
    jqs:pass(300)
    jqs:settle()
    assert.are.equal("blocked", jqs[1]:status(id))
    assert.are.equal("lost", msgpack.unpack(jqs[1]:call("explain", id)).elsewhere[1].status)
  end)
  it("that are answered late leave what is asked since then, also in the same moment", function()
    local there = jqs[0]:enqueue("a")
    jqs[1]:cancel(jqs[1]:enqueue({ name = "b", depends = { there } }))
    local left = jqs:letters(1)
    assert.are.equal("leave", msgpack.unpack(left[1][2]).kind)
    local id = jqs[1]:enqueue({ name = "b", depends = { there } })
    assert.are.equal("follow", msgpack.unpack(jqs:letters(1)[1][2]).kind)
    jqs[1]:call("outbox", { courier = "c" }, left[1][2], "ok")
    jqs:pass(5)
    jqs:settle()
    jqs[0]:succeed(jqs[0]:take("a"))
    jqs:settle()
    assert.are.equal("queued", jqs[1]:status(id))
  end)
  it("that nobody depends on a job any more do not count against a later one", function()
    local there = jqs[0]:enqueue("a")
    jqs[1]:cancel(jqs[1]:enqueue({ name = "b", depends = { there } }))
    local left = jqs:letters(1)
    jqs:pass(1)
    local id = jqs[1]:enqueue({ name = "b", depends = { there } })
    jqs:settle()
    jqs:carry(1, left)
    jqs[0]:succeed(jqs[0]:take("a"))
    jqs:settle()
    assert.are.equal("queued", jqs[1]:status(id))
  end)
  it("for a partition that a courier cannot reach are left out", function()
    ask()
    jqs[1]:enqueue({ name = "b", depends = { jqs[2]:enqueue("a") } })
    local found = jqs:letters(1, { except = { 0 } })
    assert.are.same({ 1, 2, 5000 }, { #found, found[1][1], found.next_ms })
    assert.are.equal(0, jqs:letters(1)[1][1])
  end)
  it("share the count between partitions", function()
    for _ = 1, 3 do
      ask()
      jqs[1]:enqueue({ name = "b", depends = { jqs[2]:enqueue("a") } })
    end
    local found = jqs:letters(1, { count = 4 })
    assert.are.same({ 0, 0, 2, 2, 0 },
      { found[1][1], found[2][1], found[3][1], found[4][1], found.next_ms })
  end)
  it("that are none, or for somebody else, are told by name", function()
    ask()
    local good = jqs:letters(1)[1][2]
    assert.are.equal('INVALID letters[0].kind: expected follow, leave, ended or enqueue, got "x"',
      answer(0, changed(good, { kind = "x" })))
    for expected, more in pairs({
      ["VERSION letters[0]: a letter of format 2"] = { format = 2 },
      ["INVALID letters[0].id: expected a job id"] = { id = "x" },
      ["INVALID letters[0].id: job 0000000000000002 is not of partition 00"] = { id = "0000000000000002" },
      ["INVALID letters[0].at"] = { at = -1 },
      ["INVALID letters[0].to: partition 00 writes to itself"] = { from = "00" },
      ["INVALID letters[0].from"] = { from = "9" },
      ["INVALID letters[0].system"] = { system = 1 },
      ["INVALID letters[0].format"] = { format = "x" },
      ["INVALID letters[0].how"] = { kind = "ended", id = "0000000000000001", seen = 1, how = "x" },
      ["CONFLICT letters[0].system: it is of the system \"other\""] = { system = "other" },
      ["CONFLICT letters[0].from: the system has no partition 7f"] = { from = "7f" },
    }) do
      local told = answer(0, changed(good, more))
      assert.are.equal(expected, told:sub(1, #expected))
    end
    assert.are.equal("CONFLICT letters[0].to: it is for partition 00, and this is 02", answer(2, good))
    assert.are.equal("INVALID letters[0]: expected one MessagePack map, got 5", answer(2, "\5"))
    local alone = space.new()
    assert.are.equal("CONFLICT letters[0]: this namespace is no partition of a system",
      alone:call("deliver", changed(good, { system = alone.name:sub(2, -2) }))[1])
    alone:close()
  end)
  it("that were refused are written again later", function()
    ask()
    local found = jqs:letters(1)
    jqs[1]:call("outbox", { courier = "c", except = { 0 } }, found[1][2], "VERSION letters[0]: no")
    assert.are.equal(60000, jqs:letters(1).next_ms)
    jqs:pass(60)
    assert.are.equal(1, #jqs:letters(1))
  end)
  it("that another wrote cannot be answered", function()
    ask()
    local found = jqs:letters(1)
    jqs[0]:refuses("INVALID letters[0]: this partition did not write it", "outbox", { courier = "c" }, found[1][2],
      "ok")
    jqs[1]:refuses("INVALID letters: expected at most 100, each with its answer, got 1 arguments", "outbox",
      { courier = "c" }, found[1][2])
  end)
  it("wake a courier that sleeps", function()
    assert.are.same({ next_ms = -1 }, jqs:letters(1, { wait = 1000 }))
    local marker = jqs[1].name .. ":wake:mail"
    assert.are.equal(0, jqs[1]:redis("EXISTS", marker))
    ask()
    assert.are.equal(1, jqs[1]:redis("EXISTS", marker))
    jqs:letters(1)
    jqs:settle()
    jqs[0]:redis("DEL", marker)
    jqs:letters(0, { wait = 1000 })
    jqs:pass(10)
    jqs[0]:succeed(jqs[0]:take("a"))
    assert.are.equal(0, jqs[0]:redis("EXISTS", jqs[0].name .. ":wake:mail"))
  end)
  it("are none in a namespace that is no partition", function()
    local alone = space.new()
    assert.are.same({ -1 }, alone:call("outbox", { courier = "c" }))
    alone:close()
  end)
end)
