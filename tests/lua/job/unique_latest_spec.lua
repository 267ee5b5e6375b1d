-- Unique jobs of which the latest runs last.
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a unique key", function()
  local jq = space.each()
  local function offer(more, argument)
    local spec = space.with({ name = "a", unique = "k" }, more)
    return unpack(jq:call("enqueue", spec, argument or msgpack.NIL))
  end

  describe("with if_exists latest", function()
    describe("goes back to the job that runs when the one that comes after it", function()
      local running
      local function follow(more)
        local spec = space.with({ if_exists = "latest", unique_for = 1000 }, more)
        local id, created = offer(spec)
        assert.are.equal(1, created)
        return id
      end
      local function start(more)
        local id = offer(more)
        running = jq:take("a")
        return id
      end
      local ways = {
        ["is cancelled"] = function(id)
          jq:cancel(id)
        end,
        ["is cancelled with what waits for it"] = function(id)
          jq:call("cancel", { ids = { id }, dependents = "cancel" })
        end,
        ["is discarded"] = function(id)
          jq:call("discard", { ids = { id } })
        end,
        ["is discarded, and no record would be kept"] = function(id)
          jq:set({ cancelled_ttl = 0 })
          jq:call("discard", { ids = { id } })
        end,
        ["expires"] = function()
          jq:pass(5)
          jq:settle()
        end,
      }
      for what, go in pairs(ways) do
        it(what, function()
          local first = start({ timeout = 100 })
          go(follow({ expires_in = 5 }))
          assert.are.same({ first, 0 }, { offer() })
          local third = follow({ unique_for = 0.001 })
          assert.are.same({ first }, jq:get(third).depends)
          jq:succeed(running)
          assert.are.same({ third, 0 }, { offer() })
          jq:succeed(jq:take("a"))
          jq:pass(1)
          assert.are.equal(1, select(2, offer()))
        end)
      end
    end)
    it("is free when what is to come after has gone last, without a record of the first", function()
      jq:set({ done_max = 0 })
      offer({ unique_for = 1000 })
      local running = jq:take("a")
      local second = offer({ if_exists = "latest" })
      jq:succeed(running)
      jq:cancel(second)
      assert.are.equal(1, select(2, offer()))
    end)
    it("is not another's for a record that somebody deleted", function()
      local first = offer()
      jq:take("a")
      jq.is_corrupt = true
      jq:redis("DEL", jq.name .. ":j:" .. offer({ if_exists = "latest" }))
      assert.are.same({ first, 0 }, { offer() })
    end)
  end)
end)
