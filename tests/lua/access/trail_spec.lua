local msgpack = require "support.msgpack"
local space = require "support.space"

describe("trail", function()
  local jq
  before_each(function()
    jq = space.new()
    jq:set_clock(5000000)
  end)
  after_each(function()
    jq:close()
  end)

  local function trail(spec)
    local reply = jq:call("trail", spec or {})
    local found = {}
    for i = 2, #reply do
      found[i - 1] = msgpack.unpack(reply[i])
    end
    return found, reply[1]
  end

  --- The entries there are, newest first, without moment and actor, which all have.
  local function noted()
    local found = trail()
    for _, entry in ipairs(found) do
      assert.are.equal(5000000, entry.time_ms)
      assert.are.equal("ann", entry.actor)
      entry.time_ms, entry.actor = nil, nil
    end
    return found
  end

  local function call(script, spec, ...)
    spec.actor = "ann"
    return jq:call(script, spec, ...)
  end

  it("notes who changes queues", function()
    call("queue", { name = "a", paused = true })
    call("queue", { name = "a", set = { done_max = 5 } })
    call("queue", { name = "a", unset = { "done_max" } })
    call("forget", { name = "a" })
    assert.are.same({
      { what = "forget", on = "a" }, { what = "queue", on = "a", change = { unset = { "done_max" } } },
      { what = "queue", on = "a", change = { set = { done_max = 5 } } },
      { what = "queue", on = "a", change = { paused = true } },
    }, noted())
  end)
  it("notes who grants and revokes keys, and nothing of the secret", function()
    local digest = ("ab"):rep(32)
    call("grant", { id = "0123456789ab", digest = digest, name = "n", roles = { "viewer" } })
    call("grant", { id = "0123456789ab", digest = digest, name = "n", roles = { "viewer" } })
    call("revoke", { id = "0123456789ab" })
    assert.are.same({
      { what = "revoke", on = "0123456789ab", change = { name = "n" } },
      { what = "grant", on = "0123456789ab", change = { name = "n", roles = { "viewer" } } },
    }, noted())
    for _, member in ipairs(jq:redis("ZRANGE", jq.name .. ":trail", 0, -1)) do
      assert.is_falsy(member:find(digest, 1, true))
    end
  end)
  it("notes who cancels, retries, discards and kicks, with how many jobs", function()
    local ids = jq:enqueue_all("a", "a", { name = "b" })
    jq:take("b")
    call("kick", { ids = { ids[3], space.UNKNOWN_ID } })
    call("cancel", { ids = { ids[1], space.UNKNOWN_ID, ids[2] } })
    call("cancel", { ids = { ids[1] } })
    call("retry", { ids = { ids[1] } })
    call("discard", { ids = { ids[1], ids[2] } })
    jq:take("b")
    call("kick", { where = { queue = "b" }, delay = 5 })
    assert.are.same({
      { what = "kick", on = "b", change = { where = { queue = "b" }, delay = 5 }, count = 1 },
      { what = "discard", on = ids[1], count = 2 },
      { what = "retry", on = ids[1], count = 1 }, { what = "cancel", on = ids[1], count = 2 },
      { what = "kick", on = ids[3], count = 1 },
    }, noted())
  end)
  it("tells what goes on in steps once, with the sum", function()
    jq:enqueue_many({ name = "a" }, 7)
    local cursor, where = "", { queue = "a", status = { "queued", "scheduled" } }
    repeat
      local reply = call("discard", { where = where, cursor = cursor, count = 2 })
      cursor = reply[1]
    until cursor == ""
    assert.are.same({ { what = "discard", on = "a", change = { where = where }, count = 7 } }, noted())
    call("queue", { name = "b", paused = true })
    call("discard", { where = where })
    assert.are.same({ what = "discard", on = "a", change = { where = where }, count = 0 }, noted()[1])
    assert.are.equal(3, #noted())
  end)
  it("does not add up what another did in between", function()
    jq:enqueue_many({ name = "a" }, 4)
    local cursor = call("cancel", { where = { queue = "a" }, count = 2 })[1]
    jq:call("queue", { name = "b", paused = true, actor = "bob" })
    call("cancel", { where = { queue = "a" }, count = 2, cursor = cursor })
    local found = trail()
    assert.are.same({ "cancel", "queue", "cancel" }, { found[1].what, found[2].what, found[3].what })
    assert.are.same({ 2, 2 }, { found[1].count, found[3].count })
  end)
  it("notes of a hold all values of its key, nil too", function()
    local nothing = msgpack.NIL
    call("constrain", { id = "one", by = "argument", concurrency = 1 }, msgpack.pack({ name = "a" }))
    call("constrain", { id = "two", by = { "argument.a", "argument.b", "name" }, concurrency = 1 },
      msgpack.pack({ name = "a" }))
    local function bytes_of_last()
      return jq:call("trail", { count = 1 })[2]
    end
    local function hold(id, by)
      local spec = msgpack.pack({ id = id, seconds = 5 })
      jq:call("hold", "\131" .. spec:sub(2) .. "\162by" .. by)
    end
    hold("one", nothing)
    assert.is_truthy(bytes_of_last():find("\162by" .. nothing, 1, true))
    hold("two", "\147" .. nothing .. "\161x" .. nothing)
    assert.is_truthy(bytes_of_last():find("\162by\147" .. nothing .. "\161x" .. nothing, 1, true))
  end)
  it("keeps so many, and none when there are to be none", function()
    call("config", { set = { trail_max = 3 } })
    for i = 1, 5 do
      call("queue", { name = "q" .. i, paused = true })
    end
    local found = noted()
    assert.are.same({ "q5", "q4", "q3" }, { found[1].on, found[2].on, found[3].on })
    assert.are.equal(3, #found)
    for i = 1, 3000 do
      jq:redis("ZADD", jq.name .. ":trail", 0, ("%014x"):format(i) .. msgpack.NIL)
    end
    for _, left in ipairs({ 2004, 1005, 6, 3, 3 }) do -- 3 and 3000, less 1000 at a time
      call("queue", { name = "a", paused = true })
      assert.are.equal(left, jq:redis("ZCARD", jq.name .. ":trail"))
    end
    jq:set({ trail_max = 0 })
    call("queue", { name = "a", paused = true })
    assert.are.same({}, noted())
    assert.are.equal(0, jq:redis("EXISTS", jq.name .. ":trail"))
  end)
  it("leaves out a change that is too long to keep", function()
    call("queue", { name = "a", set = { done_max = 5 }, fair = { by = "argument." .. ("x"):rep(200), weights =
      { [("y"):rep(250)] = 1, [("z"):rep(250)] = 1, [("v"):rep(250)] = 1, [("w"):rep(250)] = 1 } } })
    assert.are.same({ { what = "queue", on = "a" } }, noted())
  end)
  it("comes in pages, newest first, whatever is added meanwhile", function()
    for i = 1, 5 do
      call("queue", { name = "q" .. i, paused = true })
    end
    local first, cursor = trail({ count = 2 })
    call("queue", { name = "later", paused = true })
    local second, last = trail({ count = 10, cursor = cursor })
    assert.are.same({ "q5", "q4" }, { first[1].on, first[2].on })
    assert.are.same({ "q3", "q2", "q1" }, { second[1].on, second[2].on, second[3].on })
    assert.are.equal("", last)
  end)
  it("may be of one actor, operation or subject, in pages", function()
    for i = 1, 6 do
      jq:call("queue", { name = i % 3 == 0 and "c" or "q", paused = i % 2 == 0, actor = i % 2 == 0 and "ann" or "bob" })
    end
    local function found(spec)
      local times = {}
      for _, entry in ipairs(trail(spec)) do
        times[#times + 1] = entry.actor .. entry.on
      end
      return times
    end
    assert.are.same({ "annc", "bobc" }, found({ on = "c" }))
    assert.are.same({ "annc", "annq", "annq" }, found({ who = "ann", what = "queue" }))
    assert.are.same({}, found({ who = "ann", what = "cancel" }))
    local first, cursor = trail({ who = "bob", count = 2 })
    assert.are.same({ 2, 1, "" }, { #first, #trail({ who = "bob", count = 2, cursor = cursor }),
      select(2, trail({ who = "bob", count = 2, cursor = cursor })) })
  end)
end)
