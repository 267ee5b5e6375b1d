local space = require "support.space"

describe("tags", function()
  local jq = space.each()

  --- Pairs of tag and count in one text.
  local function tags(spec)
    local reply = jq:call("tags", spec or {})
    local shown = {}
    for i = 2, #reply do
      shown[i - 1] = reply[i][1] .. "=" .. reply[i][2]
    end
    return table.concat(shown, " "), reply[1]
  end

  local function tagged(...)
    return jq:enqueue({ name = "a", tags = { ... } })
  end
  describe("are gone with the job", function()
    it("when there are too many", function()
      jq:set({ done_max = 1 })
      for i = 1, 3 do
        tagged("t" .. i, "t")
      end
      for _, job in ipairs(jq:pick({ queues = "a", count = 3 })) do
        jq:succeed(job)
      end
      jq:pass(6)
      jq:settle()
      assert.are.equal("t=1 t3=1", (tags()))
    end)
  end)

  it("leave the queue as quick as it was: jobs without tags still take the plain path", function()
    jq:enqueue("a")
    local function life()
      return jq:commands(function()
        jq:enqueue("a")
        jq:succeed(jq:take("a"))
      end)
    end
    life()
    local before = life()
    tagged("t")
    jq:succeed(jq:take("a"))
    life()
    assert.are.equal(before, life())
  end)
end)
