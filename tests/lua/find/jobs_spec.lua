local listing = require "support.listing"
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("jobs", function()
  local jq = space.each()

  local function list(where, more)
    return listing.ids(jq, where, more)
  end

  --- One job of each state, in the order in which they are listed.
  local function one_of_each()
    local ids = {}
    ids.cancelled = jq:enqueue("a")
    jq:cancel(ids.cancelled)
    ids.done = jq:enqueue("a")
    jq:succeed(jq:take("a"))
    ids.kept = jq:enqueue({ name = "a", keep_result = true })
    jq:succeed(jq:take("a"))
    ids.error = jq:enqueue({ name = "a", max_retry = 0 })
    jq:fail(jq:take("a"))
    ids.retrying = jq:enqueue("a")
    jq:fail(jq:take("a"))
    ids.running = jq:enqueue("a")
    jq:take("a")
    ids.scheduled = jq:enqueue({ name = "a", delay = 100 })
    ids.queued = jq:enqueue("a")
    ids.blocked = jq:enqueue({ name = "a", depends = { ids.queued } })
    return ids
  end

  it("have small arguments, though they are brief", function()
    jq:enqueue_each("a", msgpack.pack("12345678"), msgpack.pack("123456789"))
    local documents = listing.all(jq, { brief = true, argument_max = 9 })
    assert.are.same({ "12345678" }, { documents[1].argument, documents[2].argument })
    assert.is_nil(documents[1].result)
    assert.are.equal("123456789", listing.all(jq, { argument_max = 0 })[2].argument)
  end)

  describe("with looked", function()
    it("look at a bounded number, however few match", function()
      local specs = {}
      for i = 1, 1000 do
        specs[i] = { name = "a" }
      end
      for _ = 1, 3 do
        jq:enqueue_all(unpack(specs))
      end
      local looked, cursor, calls = 0, nil, 0
      repeat
        local reply = jq:call("jobs", { where = { match = { ["argument.x"] = 1 } }, looked = true, cursor = cursor })
        cursor, looked, calls = reply[1], looked + reply[2], calls + 1
        assert.is_nil(reply[3])
      until cursor == ""
      assert.are.equal(3000, looked)
      assert.is_true(calls > 2 and calls < 20, calls)
    end)
  end)

  describe("in order", function()
    it("go by state as the page names them", function()
      local ids = one_of_each()
      assert.are.same({
        ids.queued, ids.scheduled, ids.blocked, ids.running, ids.retrying, ids.kept, ids.done, ids.error, ids.cancelled,
      }, list())
    end)
    it("turn round within a state with newest", function()
      local ids = jq:enqueue_all("a", "a", { name = "a", delay = 1 }, { name = "a", delay = 2 }, "b")
      assert.are.same({ ids[2], ids[1], ids[4], ids[3], ids[5] }, list({}, { newest = true }))
      assert.are.same({ ids[2], ids[1], ids[4], ids[3], ids[5] }, list({}, { newest = true, count = 1 }))
    end)
  end)

  describe("where", function()
    it("names the group of the last failure, of jobs that are error only", function()
      local id = jq:enqueue({ name = "a", max_retry = 0, tags = { "t" } })
      jq:fail(jq:take("a"), { group = "g" })
      local other = jq:enqueue("a")
      jq:fail(jq:take("a"), { group = "g" })
      assert.are.same({ id }, list({ group = "g" }))
      assert.are.same({ id }, list({ group = "g", tag = "t" }))
      assert.are.same({ id }, list({ group = "g", status = { "error", "retrying" } }))
      assert.are.same({}, list({ group = "g", status = "retrying" }))
      assert.are.same({ other }, list({ status = "retrying" }))
    end)
    it("says when it was created: from, and before", function()
      local ids = {}
      for i = 1, 4 do
        ids[i] = jq:enqueue("a")
        jq:pass(1)
      end
      assert.are.same({ ids[2], ids[3] }, list({ from_ms = space.START_MS + 1000, to_ms = space.START_MS + 3000 }))
      assert.are.same({ ids[4] }, list({ from_ms = space.START_MS + 3000 }))
    end)
    it("holds a part of the last failure's message, taken literally", function()
      local id = jq:enqueue("a")
      jq:fail(jq:take("a"), { message = "no such host: x.y" })
      jq:enqueue("b")
      jq:fail(jq:take("b"), { message = "no such host: xzy" })
      assert.are.same({ id }, list({ message = "host: x.y" }))
      assert.are.same({}, list({ message = "HOST" }))
    end)
    it("names who runs it or ran it last", function()
      local ids = jq:enqueue_all("a", "a", "a", "a")
      jq:take({ queues = "a", worker = "one" })
      jq:succeed(jq:take({ queues = "a", worker = "two" }))
      jq:release(jq:take({ queues = "a", worker = "two" }), 60)
      assert.are.same({ ids[1] }, list({ worker = "one" }))
      assert.are.same({ ids[3], ids[2] }, list({ worker = "two" }))
      assert.are.same({}, list({ worker = "three" }))
    end)
    it("says for how long it ran, or runs", function()
      local ids = jq:enqueue_all({ name = "a", keep_result = true }, "a", { name = "a", max_retry = 0 }, "a", "a", "a")
      for seconds = 1, 4 do
        local lease = jq:take("a")
        jq:pass(seconds)
        if seconds == 3 then
          jq:fail(lease)
        elseif seconds < 3 then
          jq:succeed(lease)
        else
          jq:cancel(ids[4], true)
        end
      end
      jq:take("a")
      jq:pass(2)
      assert.are.same({ ids[5], ids[1], ids[2], ids[3], ids[4] }, list({ slower_ms = 999 }))
      assert.are.same({ ids[3], ids[4] }, list({ slower_ms = 2000 }))
      assert.are.same({ ids[4] }, list({ slower_ms = 3999 }))
      assert.are.same({}, list({ slower_ms = 4000 }))
      jq:pass(10)
      assert.are.same({ ids[5] }, list({ slower_ms = 4000 }))
      assert.are.same({}, list({ slower_ms = 1, status = "queued" }))
    end)
    it("asks for a text in the argument", function()
      local ids = jq:enqueue_each("a", { customer = "acme ltd" }, { customer = "other", note = "for acme" }, 7)
      assert.are.same({ ids[1], ids[2] }, list({ argument = "acme" }))
      assert.are.same({ ids[1] }, list({ argument = "acme ltd" }))
      assert.are.same({}, list({ argument = "a%w+" }))
    end)
  end)

  describe("over pages", function()
    it("are each seen once, however long a page is", function()
      for i = 1, 30 do
        jq:enqueue({ name = "n" .. i % 4, priority = i % 3, delay = i % 5 == 0 and i or nil })
      end
      jq:pick({ queues = "*", count = 7 })
      local all = list()
      assert.are.equal(30, #all)
      for count = 1, 8 do
        assert.are.same(all, list({}, { count = count }))
      end
      local newest = list({}, { newest = true })
      for count = 1, 8 do
        assert.are.same(newest, list({}, { newest = true, count = count }))
      end
    end)
    it("go on behind a job that went away, and a queue that went away", function()
      local ids = jq:enqueue_all("a", "a", "b", "c", "c")
      local first = jq:call("jobs", { count = 1 })
      jq:call("discard", { ids = { ids[1] } })
      local second = jq:call("jobs", { count = 2, cursor = first[1] })
      assert.are.equal(ids[2], msgpack.unpack(second[2]).id)
      assert.are.equal(ids[3], msgpack.unpack(second[3]).id)
      jq:call("discard", { ids = { ids[3] } })
      jq:call("forget", { name = "b" })
      local third = jq:call("jobs", { cursor = second[1] })
      assert.are.equal(ids[4], msgpack.unpack(third[2]).id)
      assert.are.equal(3, #third)
    end)
    it("look at 1000 jobs at most: a page may be empty before the end", function()
      jq:enqueue_many({ name = "x" }, 2500)
      local last = jq:enqueue({ name = "y", queue = "x", priority = 1 })
      local reply = jq:call("jobs", { where = { name = "y" } })
      assert.are.equal(1, #reply)
      assert.are_not.equal("", reply[1])
      local documents, pages = listing.all(jq, { where = { name = "y" } })
      assert.are.equal(last, documents[1].id)
      assert.is_true(pages <= 4)
    end)
    it("end when many queues have none of them #once", function()
      for i = 1, 1100 do
        jq:queue("q" .. i)
      end
      local id = jq:enqueue("z")
      assert.are.same({ id }, list())
      assert.are.same({}, list({ name = "none" }))
    end)
    it("cost the same wherever they are #once", function()
      jq:enqueue_many({ name = "a", delay = 100 }, 5000)
      for _, newest in ipairs({ false, true }) do
        local costs, cursor = {}, nil
        repeat
          costs[#costs + 1] = jq:commands(function()
            cursor = jq:call("jobs", { where = { queue = "a" }, count = 100, cursor = cursor, newest = newest })[1]
          end)
        until cursor == ""
        assert.is_true(#costs >= 50)
        for i = 2, 50 do
          assert.is_true(math.abs(costs[i] - costs[1]) <= 6, costs[i] .. " and " .. costs[1])
        end
      end
    end)
  end)
end)
