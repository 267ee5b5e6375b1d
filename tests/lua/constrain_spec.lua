-- Creating and replacing constraints: what is shown, which jobs are matched, what is refused.
local msgpack = require "support.msgpack"
local server = require "support.server"
local space = require "support.space"
local specs = require "support.specs"

local raw = msgpack.raw

describe("constrain", function()
  local jq
  before_each(function()
    jq = space.new()
  end)
  after_each(function()
    jq:close()
  end)
  local function current()
    return jq
  end

  describe("answers with a document", function()
    it("of concurrency", function()
      assert.are.same({ id = "c", match = { name = "a" }, concurrency = 5, running = 0, keys = 0, lanes = 0,
        held = 0 }, jq:constrain({ id = "c", concurrency = 5 }, { name = "a" }))
    end)
    it("of a rate", function()
      assert.are.same({ id = "c", match = { name = "a" }, rate = { limit = 100, period = 0.5 }, running = 0, keys = 0,
        starts = 0, lanes = 0, held = 0 },
        jq:constrain({ id = "c", rate = { limit = 100, period = 0.5 } }, { name = "a" }))
    end)
    it("of a smooth rate, without starts", function()
      local document = jq:constrain({ id = "c", rate = { limit = 1, period = 5, smooth = true } }, { name = "a" })
      assert.are.same({ limit = 1, period = 5, smooth = true }, document.rate)
      assert.is_nil(document.starts)
    end)
    it("of everything at once, as given", function()
      local spec = { id = "c", by = { "argument.x", "queue" }, concurrency = 1, rate = { limit = 2, period = 3 },
        cost = "argument.n", order = "strict" }
      local document = jq:constrain(spec, { name = "a" })
      spec.match, spec.running, spec.keys = { name = "a" }, 0, 0
      assert.are.same(spec, document)
    end)
    it("with by as a path, and a cost as a number", function()
      local document = jq:constrain({ id = "c", by = "argument.x", rate = { limit = 2, period = 3 }, cost = 1.5 },
        { name = "a" })
      assert.are.same({ "argument.x", 1.5 }, { document.by, document.cost })
    end)
    it("with the matcher byte for byte", function()
      local match = "\130\164name\217\1a\170argument.x\130\162in\147\196\1b\212\1x\207\255\255\255\255\255\255\255\255"
        .. "\162ne\203\63\240\0\0\0\0\0\0"
      local reply = jq:call("constrain", { id = "c", concurrency = 1 }, match)
      assert.is_truthy(reply:find("\165match" .. match, 1, true))
      assert.is_truthy(jq:call("constraints", {})[2]:find("\165match" .. match, 1, true))
    end)
    it("with the use there is when it is set", function()
      jq:enqueue_many({ name = "a" }, 5)
      jq:start({ queues = "a", count = 2 })
      local document = jq:constrain({ id = "c", concurrency = 1 }, { name = "a" })
      assert.are.same({ 2, 1 }, { document.running, document.keys })
    end)
    it("that constraints shows as well", function()
      local document = jq:constrain({ id = "c", by = "argument.x", concurrency = 1 }, { name = "a" })
      assert.are.same(document, jq:constraint("c"))
    end)
  end)

  describe("replaces a constraint whole", function()
    it("with what was left out gone", function()
      jq:constrain({ id = "c", by = "argument.x", concurrency = 1, rate = { limit = 2, period = 3 }, cost = 2,
        order = "strict" }, { name = "a" })
      assert.are.same({ id = "c", match = { queue = "b" }, concurrency = 7, running = 0, keys = 0, lanes = 0,
        held = 0 }, jq:constrain({ id = "c", concurrency = 7 }, { queue = "b" }))
      assert.are.equal(2, #jq:call("constraints", {}))
    end)
    it("and a field that is nil counts as left out", function()
      jq:constrain({ id = "c", concurrency = 1, rate = { limit = 2, period = 3 } }, { name = "a" })
      local document = jq:constrain({ id = "c", concurrency = 3, rate = raw("\192"), by = raw("\192") }, { name = "a" })
      assert.is_nil(document.rate)
    end)
    it("and leaves it as it was when the new one is refused", function()
      local before = jq:constrain({ id = "c", concurrency = 1 }, { name = "a" })
      jq:refuses("INVALID match.nme", "constrain", { id = "c", concurrency = 2 }, { nme = "a" })
      jq:refuses("INVALID concurrency", "constrain", { id = "c", concurrency = 0 }, { name = "b" })
      assert.are.same(before, jq:constraint("c"))
    end)
    it("of that id only: letters, case and blanks count", function()
      local ids = { "c", "C", " c", "c ", "c:d", "{c}", "c*", "ü", "日本", "-", "0", "00", ("x"):rep(255), "c\\", "%s",
        "c'd\"" }
      for i, id in ipairs(ids) do
        jq:constrain({ id = id, concurrency = i }, { name = "job" .. i })
        jq:enqueue_many({ name = "job" .. i }, i + 2)
      end
      for i, id in ipairs(ids) do
        assert.are.equal(i, #jq:start("job" .. i))
        local document = jq:constraint(id)
        assert.are.same({ id, i, i }, { document.id, document.concurrency, document.running })
      end
    end)
  end)

  describe("takes at most 1000 constraints", function()
    before_each(function()
      for i = 1, 1000 do
        jq:call("constrain", { id = "c" .. i, concurrency = 1 }, { name = "job" .. i })
      end
    end)
    it("and refuses one more", function()
      jq:refuses("FULL id: ", "constrain", { id = "new", concurrency = 1 }, { name = "a" })
    end)
    it("and goes on replacing", function()
      assert.are.equal(2, jq:constrain({ id = "c500", concurrency = 2 }, { name = "a" }).concurrency)
    end)
    it("and takes another when one is deleted", function()
      jq:unconstrain("c1")
      jq:constrain({ id = "new", concurrency = 1 }, { name = "a" })
      jq:enqueue_all("a", "a")
      assert.are.equal(1, #jq:start("a"))
    end)
    it("which may all match one job", function()
      for i = 1, 1000 do
        jq:call("constrain", { id = "c" .. i, concurrency = i == 700 and 1 or 2 }, { name = { glob = "x*" } })
      end
      local ids = jq:enqueue_all("x1", "x2", "x3")
      local jobs = jq:start({ "x1", "x2", "x3" })
      assert.are.same({ ids[1] }, space.ids(jobs))
      jq:succeed(jobs[1])
      assert.are.same({ ids[2] }, jq:start_ids({ "x1", "x2", "x3" }))
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

  describe("refuses", function()
    local function with(field, more)
      return function(value)
        local spec = { id = "c", concurrency = 1 }
        for name, given in pairs(more or {}) do
          spec[name] = given
        end
        spec[field] = value
        return { spec, { name = "a" } }
      end
    end
    specs.refused_field(it, current, "constrain", with("id"), "id", { "text of 1 to 255 bytes" }, {
      { "a missing id", nil, "nothing" },
      { "an empty id", "", '""' },
      { "an id of 256 bytes", ("c"):rep(256), '"ccc' },
      { "an id with a line break", "a\nb", '"a?b"' },
      { "an id with a zero byte", "a\0b", '"a?b"' },
      { "an id that is no UTF-8", "a\255", '"a?"' },
      { "a number as id", 5, "5" },
      { "a list as id", { "c" }, "a list" },
    })
    specs.refused_field(it, current, "constrain", with("concurrency"), "concurrency", { "integer", "1", "10^9" }, {
      { "a concurrency of 0", 0, "0" },
      { "a negative concurrency", -1, "-1" },
      { "half a concurrency", 1.5, "1.5" },
      { "a concurrency beyond 10^9", 1000000001, "1000000001" },
      { "a concurrency that is no number", msgpack.NAN, "" },
      { "an infinite concurrency", msgpack.INFINITY, "inf" },
      { "text as concurrency", "1", '"1"' },
      { "true as concurrency", true, "true" },
    })
    it("a constraint without concurrency and rate", function()
      local message = jq:refuses("INVALID ", "constrain", { id = "c" }, { name = "a" })
      assert.is_truthy(message:find("concurrency", 1, true) and message:find("rate", 1, true), message)
    end)
    specs.refused_field(it, current, "constrain", with("rate"), "rate", { "limit", "period" }, {
      { "a number as rate", 5, "5" },
      { "text as rate", "5/s", '"5/s"' },
    })
    it("a list as rate", function()
      jq:refuses("INVALID rate: expected a map", "constrain", { id = "c", rate = { 1, 2 } }, { name = "a" })
    end)
    it("an unknown field of rate, with what may have been meant", function()
      jq:refuses("INVALID rate.limits: unknown field, did you mean limit?", "constrain",
        { id = "c", rate = { limits = 1, period = 1 } }, { name = "a" })
    end)
    local function rate(field)
      return function(value)
        local given = { limit = 1, period = 1 }
        given[field] = value
        return { { id = "c", rate = given }, { name = "a" } }
      end
    end
    specs.refused_field(it, current, "constrain", rate("limit"), "rate.limit", { "integer", "1", "10^9" }, {
      { "a rate without limit", nil, "nothing" },
      { "a limit of 0", 0, "0" },
      { "a negative limit", -5, "-5" },
      { "half a limit", 0.5, "0.5" },
      { "a limit beyond 10^9", 1000000001, "1000000001" },
      { "text as limit", "1", '"1"' },
      { "a limit that is no number", msgpack.NAN, "" },
    })
    specs.refused_field(it, current, "constrain", rate("period"), "rate.period", { "seconds", "0.001", "31536000" }, {
      { "a rate without period", nil, "nothing" },
      { "a period of 0", 0, "0" },
      { "a negative period", -1, "-1" },
      { "a period of half a millisecond", 0.0005, "0.0005" },
      { "a period of more than a year", 31536001, "31536001" },
      { "text as period", "1s", '"1s"' },
      { "a period that is no number", msgpack.NAN, "" },
      { "an infinite period", msgpack.INFINITY, "inf" },
    })
    specs.refused_field(it, current, "constrain", rate("smooth"), "rate.smooth", { "true or false" }, {
      { "1 as smooth", 1, "1" },
      { "text as smooth", "yes", '"yes"' },
    })
    specs.refused_field(it, current, "constrain", with("cost", { rate = { limit = 1, period = 1 } }), "cost",
      { "number", "0", "10^9", "path" }, {
        { "a negative cost", -1, "-1" },
        { "a cost beyond 10^9", 1000000001, "1000000001" },
        { "a cost that is no number", msgpack.NAN, "" },
        { "true as cost", true, "true" },
        { "a list as cost", { "argument.n" }, "a list" },
      })
    for what, path in pairs({ ["a path to the name"] = "name", ["a path to tags"] = "tags", ["an empty path"] = "",
      ["a path to nowhere"] = "arguments.n", ["an empty segment"] = "argument..n" }) do
      it(what .. " as cost", function()
        jq:refuses("INVALID cost: expected ", "constrain",
          { id = "c", rate = { limit = 1, period = 1 }, cost = path }, { name = "a" })
      end)
    end
    it("a path that is none into the argument as cost, and says which may have been meant", function()
      local spec = { id = "c", rate = { limit = 1, period = 1 } }
      for cost, got in pairs({ tokens = '"tokens", did you mean argument.tokens?', priority = '"priority"' }) do
        spec.cost = cost
        jq:refuses("INVALID cost: expected a path into the argument: argument or argument.<path>, got " .. got,
          "constrain", spec, { name = "a" })
      end
    end)
    specs.refused_field(it, current, "constrain", with("by"), "by", { "path" }, {
      { "a number as by", 5, "5" },
      { "a map as by", { x = "name" }, "a map" },
      { "no paths", raw("\144"), "an empty list" },
      { "5 paths", { "name", "queue", "priority", "argument.x", "argument.y" }, "a list" },
    })
    for what, path in pairs({ ["an empty path"] = "", ["tags"] = "tags", ["an unknown path"] = "arguments.x",
      ["a path that ends with a dot"] = "argument.", ["an empty segment"] = "argument.x..y",
      ["a lone backslash"] = "argument.x\\", ["an unknown escape"] = "argument.x\\y",
      ["a path into the name"] = "name.x", ["a star"] = "*" }) do
      it(what .. " as by", function()
        jq:refuses("INVALID by: expected ", "constrain", { id = "c", by = path, concurrency = 1 }, { name = "a" })
      end)
      it(what .. " in a list as by, by its place", function()
        jq:refuses("INVALID by[1]: expected ", "constrain", { id = "c", by = { "name", path }, concurrency = 1 },
          { name = "a" })
      end)
    end

    describe("a matcher", function()
      local function refused(what, place, match, ...)
        local words = { ... }
        it(what, function()
          local message = jq:refuses("INVALID " .. place .. ":", "constrain", { id = "c", concurrency = 1 }, match)
          for _, word in ipairs(words) do
            assert.is_truthy(message:find(word, 1, true), message .. " does not name " .. word)
          end
        end)
      end
      refused("that is missing", "arguments", nil)
      refused("of no bytes", "match", "")
      refused("that is no map", "match", msgpack.pack("a"), "map")
      refused("that is a list", "match", { { name = "a" } }, "map")
      refused("that is cut off", "match", "\129\164name\165ab", "MessagePack")
      refused("with bytes behind it", "match", msgpack.pack({ name = "a" }) .. "\1", "MessagePack")
      refused("without a condition", "match", "\128", "condition")
      refused("with an unknown key", "match.nam", { nam = "a" }, "did you mean name?")
      refused("with a key that is no text", "match", "\129\5\161a", "text")
      refused("with a key that comes twice", "match.name", "\130\164name\161a\164name\161b", "once")
      refused("with an unknown operator", "match.argument.size.regex", { ["argument.size"] = { regex = "5" } },
        "expected one of")
      refused("with an operator nearly right", "match.priority.lte", { priority = { lte = 5 } },
        "lt, le, gt, ge")
      refused("with no operators", "match.name", { name = raw("\128") })
      refused("with an empty list", "match.name", { name = raw("\144") }, "1 to 1000")
      refused("with an empty list for in", "match.priority.in", { priority = { ["in"] = raw("\144") } }, "1 to 1000")
      refused("with a list for eq", "match.argument.x.eq", { ["argument.x"] = { eq = { 1 } } })
      refused("with a map in a list", "match.argument.x[1]", { ["argument.x"] = { 1, { lt = 5 } } })
      refused("with a number for glob", "match.name.glob", { name = { glob = 5 } }, "text")
      refused("with text for exists", "match.argument.x.exists", { ["argument.x"] = { exists = "yes" } },
        "true or false")
      refused("with true as bound", "match.argument.x.lt", { ["argument.x"] = { lt = true } }, "number")
      refused("with a number for the name", "match.name", { name = 5 }, "text")
      refused("with text for the priority", "match.priority", { priority = "5" }, "integer")
      refused("with a number for tags", "match.tags", { tags = 5 }, "text")
      refused("with an empty path", "match.argument.", { ["argument."] = 1 })
      refused("with an empty segment", "match.argument.x..y", { ["argument.x..y"] = 1 })
      refused("with an unknown escape", "match.argument.x\\y", { ["argument.x\\y"] = 1 })
      refused("with any that is no list", "match.any", { any = { name = "a" } }, "list of 1 to 100")
      refused("with an empty any", "match.any", { any = raw("\144") }, "list of 1 to 100")
      refused("with an error inside any, by its place", "match.any[1].name", { any = { { name = "a" }, { name = 5 } } })
      refused("with an error inside not", "match.not.priority.gt", { ["not"] = { priority = { gt = "x" } } })
      refused("with an error deep inside", "match.any[0].not.any[1].tags.glob",
        { any = { { ["not"] = { any = { { name = "a" }, { tags = { glob = 1 } } } } } } })
      refused("with an empty matcher in any", "match.any[0]", { any = { raw("\128") } })
      refused("with a list as not", "match.not", { ["not"] = { { name = "a" } } }, "map")

      for what, match in pairs({
        ["with bounds that exclude each other"] = { ["argument.size"] = { lt = 1, gt = 2 } },
        ["with bounds that leave nothing between"] = { ["argument.size"] = { lt = 1, ge = 1 } },
        ["with bounds of a number and a text"] = { ["argument.size"] = { lt = 1, gt = "a" } },
        ["with eq and another in"] = { ["argument.size"] = { eq = "a", ["in"] = { "b" } } },
        ["with eq and ne of the same"] = { ["argument.size"] = { eq = 1, ne = raw("\203\63\240\0\0\0\0\0\0") } },
        ["with eq outside its bounds"] = { ["argument.size"] = { eq = 5, lt = 5 } },
        ["with in outside its bounds"] = { ["argument.size"] = { ["in"] = { 5, 6 }, lt = 5 } },
        ["with eq that a glob does not fit"] = { ["argument.size"] = { eq = "abc", glob = "b*" } },
        ["with a glob and a number"] = { ["argument.size"] = { eq = 5, glob = "*" } },
        ["with eq of what is not there"] = { ["argument.size"] = { eq = 5, exists = false } },
        ["with a bound for what is not there"] = { ["argument.size"] = { lt = 5, exists = false } },
      }) do
        refused(what, "match.argument.size", match)
      end
      refused("that says the name is not there", "match.name", { name = { exists = false } })

      local function any_of(count, make)
        local any = {}
        for i = 1, count do
          any[i] = make(i)
        end
        return any
      end
      refused("of 101 conditions", "match", { any = any_of(100, function(i)
        return i == 1 and { name = "a", queue = "b" } or { ["argument.x" .. i] = 1 }
      end) }, "100")
      local conditions = {}
      for i = 1, 10000 do
        conditions["argument.x" .. i] = 1
      end
      refused("of 10,000 conditions", "match", conditions)
      refused("with any of 101", "match.any", { any = any_of(101, function(i)
        return { name = "n" .. i }
      end) }, "1 to 100")
      refused("with a list of 1001", "match.name", { name = any_of(1001, function(i)
        return "n" .. i
      end) }, "1 to 1000")
      refused("of 1001 operands", "match", { name = any_of(600, function(i)
        return "n" .. i
      end), queue = any_of(401, function(i)
        return "n" .. i
      end) }, "1000")
      refused("of more than 65536 bytes", "match", { ["argument.x"] = ("x"):rep(65536) }, "65536")
      it("of 17 levels", function()
        local match = { name = "a" }
        for _ = 1, 16 do
          match = { any = { match } }
        end
        local message = jq:refuses("INVALID match", "constrain", { id = "c", concurrency = 1 }, match)
        assert.is_truthy(message:find("16", 1, true), message)
      end)
      it("of 20,000 levels", function()
        jq:refuses("INVALID match", "constrain", { id = "c", concurrency = 1 },
          ("\129\163not"):rep(13000) .. "\129\164name\161a")
      end)
      it("that announces more than it has", function()
        jq:refuses("INVALID match:", "constrain", { id = "c", concurrency = 1 }, "\223\127\255\255\255")
      end)
    end)

    it("a call without arguments", function()
      jq:refuses("INVALID arguments: ", "constrain")
    end)
    it("a call with more than two", function()
      jq:refuses("INVALID arguments: ", "constrain", { id = "c", concurrency = 1 }, { name = "a" }, { name = "a" })
    end)
    it("an unknown field by its name", function()
      jq:refuses("INVALID concurency: unknown field, did you mean concurrency?", "constrain",
        { id = "c", concurency = 1 }, { name = "a" })
    end)
    it("the matcher among the fields", function()
      jq:refuses("INVALID match: unknown field", "constrain", { id = "c", concurrency = 1, match = { name = "a" } },
        { name = "a" })
    end)
    it("a spec that is no map", function()
      jq:refuses("INVALID spec: expected one MessagePack map", "constrain", msgpack.pack("c"), { name = "a" })
    end)
    it("a spec with bin", function()
      jq:refuses("INVALID spec: not MessagePack", "constrain", { id = msgpack.bin("c"), concurrency = 1 },
        { name = "a" })
    end)
    specs.namespace(it, current, "constrain", { { id = "c", concurrency = 1 }, { name = "a" } })
  end)

  it("runs by the server's clock as well", function()
    local real = space.new({ clock = "server" })
    real:constrain({ id = "c", rate = { limit = 1, period = 1000 } }, { name = "a" })
    real:enqueue_all("a", "a")
    assert.are.equal(1, #real:start("a"))
    local now = server.shared():call("TIME")
    local opens_ms = real:constraint("c").opens_ms
    assert.is_true(opens_ms > now[1] * 1000 and opens_ms <= now[1] * 1000 + 1001000)
    real:close()
  end)
end)
