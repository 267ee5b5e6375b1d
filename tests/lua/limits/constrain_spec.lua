-- Creating and replacing constraints: what is shown, which jobs are matched, what is refused.
local space = require "support.space"

describe("constrain", function()
  local jq = space.each()

  describe("answers with a document", function()
    it("of everything at once, as given", function()
      local spec = { id = "c", by = { "argument.x", "queue" }, concurrency = 1, rate = { limit = 2, period = 3 } }
      local document = jq:constrain(spec, { name = "a" })
      spec.match, spec.keys = { name = "a" }, 0
      assert.are.same(spec, document)
    end)
    it("with the matcher byte for byte", function()
      local match = "\130\164name\217\1a\170argument.x\130\162in\147\196\1b\212\1x\207\0\0\0\1\0\0\0\0"
        .. "\162ne\203\63\240\0\0\0\0\0\0"
      local reply = jq:call("constrain", { id = "c", concurrency = 1 }, match)
      assert.is_truthy(reply:find("\165match" .. match, 1, true))
      assert.is_truthy(jq:call("constraints", {})[2]:find("\165match" .. match, 1, true))
    end)
  end)

  describe("replaces a constraint whole", function()
    it("and leaves it as it was when the new one is refused", function()
      local before = jq:constrain({ id = "c", concurrency = 1 }, { name = "a" })
      jq:refuses("INVALID match.nme", "constrain", { id = "c", concurrency = 2 }, { nme = "a" })
      jq:refuses("INVALID concurrency", "constrain", { id = "c", concurrency = 0 }, { name = "b" })
      assert.are.same(before, jq:constraint("c"))
    end)
  end)

  describe("takes at most 1000 constraints #once", function()
    it("and refuses one more, goes on replacing, and takes another when one is deleted", function()
      for i = 1, 1000 do
        jq:call("constrain", { id = "c" .. i, concurrency = 1 }, { name = "job" .. i })
      end
      jq:refuses("FULL id: ", "constrain", { id = "new", concurrency = 1 }, { name = "a" })
      assert.are.equal(2, jq:constrain({ id = "c500", concurrency = 2 }, { name = "b" }).concurrency)
      jq:refuses("FULL id: ", "constrain", { id = "new", concurrency = 1 }, { name = "a" })
      jq:unconstrain("c1")
      jq:constrain({ id = "new", concurrency = 1 }, { name = "a" })
      jq:enqueue_all("a", "a")
      assert.are.equal(1, #jq:start("a"))
    end)
  end)

  it("takes no argument that cannot be read for more than it is", function()
    jq:constrain({ id = "c", by = "argument.x", concurrency = 1 }, { name = "a", ["argument.x"] = { ne = 5 } })
    local ids = jq:enqueue_each("a", "\129", "\193", "\219\255\255\255\255", "\223\255\255\255\255", "x\0\0",
      ("\145"):rep(100000), "\129\161x\5")
    local jobs = jq:start("a")
    assert.are.same({ ids[1], ids[7] }, space.ids(jobs))
    assert.are.equal("\129", jobs[1].blob)
    jq:succeed(jobs[1])
    assert.are.same({ ids[2] }, jq:start_ids("a"))
  end)
end)
