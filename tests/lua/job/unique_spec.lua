local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a unique key", function()
  local jq = space.each()
  local function offer(more, argument)
    local spec = space.with({ name = "a", unique = "k" }, more)
    return unpack(jq:call("enqueue", spec, argument or msgpack.NIL))
  end

  local ends = {
    success = function(id)
      assert.are.equal("done", jq:succeed(jq:take("a"), msgpack.NIL) and jq:status(id))
    end,
    failure = function(id)
      jq:fail(jq:take("a"), { should_retry = false })
      assert.are.equal("error", jq:status(id))
    end,
    ["cancelling what waits"] = function(id)
      jq:cancel(id)
    end,
    ["cancelling what runs"] = function(id)
      jq:take("a")
      jq:cancel(id)
    end,
    ["the last lapse"] = function(id)
      jq:take("a")
      jq:pass(31)
      jq:settle()
      assert.are.equal("error", jq:status(id))
    end,
  }
  for what, finish in pairs(ends) do
    it("is free after " .. what, function()
      local id = offer({ max_retry = 0 })
      finish(id)
      local new, created = offer()
      assert.are.equal(1, created)
      assert.are_not.equal(id, new)
    end)
    it("is kept for unique_for after " .. what, function()
      local id = offer({ max_retry = 0, unique_for = 60 })
      finish(id)
      jq:pass(59.999)
      assert.are.same({ id, 0 }, { offer() })
      jq:pass(0.001)
      assert.are.equal(1, select(2, offer()))
    end)
  end
  it("is taken while its job runs", function()
    local id = offer()
    jq:take("a")
    assert.are.same({ id, 0 }, { offer() })
  end)
  describe("that is kept for a job which ended", function()
    local function is_free()
      assert.are.equal(1, select(2, offer()))
    end
    it("is free when that is discarded while it waits, and no record of it would be kept", function()
      jq:set({ cancelled_max = 0 })
      jq:call("discard", { ids = { (offer({ unique_for = 1000 })) } })
      is_free()
    end)
    it("is free when there are too many records, also in the queue that the job moved to", function()
      jq:set({ done_max = 1 })
      offer({ unique_for = 1000 })
      jq:succeed(jq:take("a"), msgpack.NIL, { move = { name = "b" } })
      jq:succeed(jq:take("b"))
      jq:enqueue("b")
      jq:succeed(jq:take("b"))
      jq:pass(10)
      jq:settle()
      is_free()
    end)
  end)

  describe("with unique_within", function()
    local function throttled(more)
      return offer(space.with({ unique_within = 60, max_retry = 0 }, more))
    end
    it("is kept for its time from enqueueing, whatever becomes of the job", function()
      local id = throttled()
      ends.failure(id)
      jq:pass(59.999)
      assert.are.same({ id, 0 }, { offer() })
      jq:pass(0.001)
      assert.are.equal(1, select(2, offer()))
    end)
    for _, state in ipairs({ "waits", "ended", "left no record" }) do
      it("is free when the job is discarded that " .. state, function()
        local id = throttled()
        if state == "ended" then
          jq:succeed(jq:take("a"))
        elseif state == "left no record" then
          jq:set({ cancelled_max = 0 })
        end
        jq:call("discard", { ids = { id } })
        assert.are.equal(1, select(2, offer()))
      end)
    end
    it("is taken out by a sweep", function()
      throttled()
      jq:pass(60)
      jq:settle()
      assert.are.equal(0, jq:redis("EXISTS", jq.name .. ":unique:k", jq.name .. ":unique-kept"))
    end)
  end)
end)
