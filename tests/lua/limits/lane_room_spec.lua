-- Room that one lane of held jobs cannot use is another's.
local limits = require "support.limits"
local space = require "support.space"

describe("held jobs", function()
  local jq = space.each()

  local limit, tagged, tagged_each = limits.by_tags(jq)

  describe("get room that another lane cannot use", function()
    it("when that waits for something else then", function()
      limit("c", 1)
      limit("d", 1)
      tagged({ "c" })
      tagged({ "d" })
      local of_c = unpack(jq:start("q"))
      tagged({ "c", "d" }, nil, { priority = -1 })
      local waits = tagged({ "c" })
      assert.are.same({}, jq:start_ids("q"))
      jq:succeed(of_c)
      assert.are.same({ waits }, jq:start_ids("q"))
    end)
    it("when hundreds wait for something else each #once", function()
      limit("c", 1)
      limit("d", 1, { by = "argument.v" })
      tagged({ "c" })
      local of_c = jq:start_one("q")
      tagged_each({ "d" }, 350)
      local of_d = jq:start("q")
      assert.are.equal(350, #of_d)
      local both = tagged_each({ "c", "d" }, 350, { priority = -1 })
      local waits = tagged({ "c" })
      assert.are.same({}, jq:start_ids("q"))
      jq:succeed(of_c)
      local jobs = jq:start("q")
      assert.are.same({ waits }, space.ids(jobs))
      jq:succeed(of_d[200])
      assert.are.same({}, jq:start_ids("q"))
      jq:succeed(jobs[1])
      assert.are.same({ both[200] }, jq:start_ids("q"))
      jq:succeed(of_d[7])
      jq:succeed({ id = both[200], attempt = 1 })
      assert.are.same({ both[7] }, jq:start_ids("q"))
    end)
    for what, go in pairs({
      ["is cancelled"] = function(id)
        jq:cancel(id)
      end,
      ["expires"] = function()
        jq:pass(5)
      end,
      ["is in a queue that is paused"] = function()
        jq:queue({ name = "p", paused = true })
      end,
      ["is in a queue that nobody asks for"] = function() end,
      ["is matched by a new constraint that is closed"] = function()
        limit("p", 1)
        jq:hold("p", 1000)
      end,
    }) do
      for _, moment in ipairs({ "before", "after" }) do
        it("when its job " .. what .. ", " .. moment .. " the room came", function()
          limit("c", 1)
          tagged({ "c" })
          local job = jq:start_one("q")
          local best = jq:enqueue({ name = "job", queue = "p", priority = -9, tags = { "c", "p" }, expires_in = 5 })
          local waits = tagged({ "c" })
          assert.are.same({}, jq:start_ids({ "p", "q" }))
          if moment == "before" then
            go(best)
            jq:succeed(job)
          else
            jq:succeed(job)
            go(best)
          end
          assert.are.same({ waits }, jq:start_ids(what:find("nobody", 1, true) and "q" or { "p", "q" }))
        end)
      end
    end
  end)
end)
