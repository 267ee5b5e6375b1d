-- Constraints with `by`: each value has room of its own.
local limits = require "support.limits"
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a constraint with concurrency", function()
  local jq = space.each()

  local limit = limits.at_once(jq)

  describe("with by", function()
    local EXT = msgpack.raw("\212\1a")

    --- All but the last argument belong to one key: one of them starts, and the last one beside it.
    local function share(by, one, other)
      limit(1, nil, { by = by })
      local ids = jq:enqueue_each("a", one, other)
      local started = jq:start_ids("a")
      return #started == 1 and started[1] == ids[1]
    end

    it("gives each value room of its own", function()
      limit(2, nil, { by = "argument.customer" })
      local ids = jq:enqueue_each("a", { customer = 1 }, { customer = 1 }, { customer = 2 }, { customer = 1 },
        { customer = 2 }, { customer = 3 }, { customer = 2 })
      local jobs = jq:start("a")
      assert.are.same({ ids[1], ids[2], ids[3], ids[5], ids[6] }, space.ids(jobs))
      jq:succeed(jobs[3])
      assert.are.same({ ids[7] }, jq:start_ids("a"))
      jq:succeed(jobs[1])
      assert.are.same({ ids[4] }, jq:start_ids("a"))
    end)
    it("keeps combinations apart that look alike when strung together", function()
      limit(1, nil, { by = { "argument.x", "argument.y" } })
      local ids = jq:enqueue_each("a", { x = "a", y = "bc" }, { x = "ab", y = "c" }, { x = "a,b", y = "c" },
        { x = "a", y = "b,c" }, { x = "a\0b", y = "c" }, { x = "a", y = "b\0c" }, { x = "", y = "abc" },
        { x = "abc", y = "" }, { x = "a:b", y = "c" }, { x = "a", y = "b:c" }, { x = "a|b", y = "c" },
        { x = "a", y = "b|c" }, { x = 1, y = 23 }, { x = 12, y = 3 }, { y = "a" }, { x = "a" })
      assert.are.same(ids, jq:start_ids("a"))
    end)
    it("lets jobs share a key where the path leads nowhere, and with those whose value is nil", function()
      limit(1, nil, { by = "argument.to.customer" })
      local ids = jq:enqueue_each("a", {}, { to = 5 }, { to = { customer = msgpack.raw("\192") } }, "\192",
        msgpack.pack("to"), { to = { { customer = 1 } } }, "\161", { to = { customer = 1 } })
      local jobs = jq:start("a")
      assert.are.same({ ids[1], ids[8] }, space.ids(jobs))
      for i = 2, 7 do
        jq:succeed(jobs[1])
        jobs = jq:start("a")
        assert.are.same({ ids[i] }, space.ids(jobs))
      end
    end)

    local raw = msgpack.raw
    for what, pair in pairs({
      ["an integer and the same as a float"] = { 1, raw("\203\63\240\0\0\0\0\0\0") },
      ["an integer in one byte and in nine"] = { 5, raw("\207\0\0\0\0\0\0\0\5") },
      ["a float in four bytes and in eight"] = { raw("\202\63\192\0\0"), raw("\203\63\248\0\0\0\0\0\0") },
      ["0.0 and -0.0"] = { 0, raw("\203\128\0\0\0\0\0\0\0") },
      ["2^53 + 1, signed and unsigned"] = { raw("\207\0\32\0\0\0\0\0\1"), raw("\211\0\32\0\0\0\0\0\1") },
      ["2^63 and the same as a float"] = { raw("\207\128\0\0\0\0\0\0\0"), raw("\203\67\224\0\0\0\0\0\0") },
      ["a text with a short and a long header"] = { "ab", raw("\219\0\0\0\2ab") },
      ["equal binary data, however long the header"] = { raw("\196\2ab"), raw("\198\0\0\0\2ab") },
    }) do
      it("finds the same value in " .. what, function()
        assert.is_true(share("argument.v", { v = pair[1] }, { v = pair[2] }))
      end)
    end
    for what, pair in pairs({
      ["a number and its text"] = { 1, "1" },
      ["a text and binary data"] = { "a", msgpack.bin("a") },
      ["binary data and ext"] = { msgpack.bin("a"), EXT },
      ["ext of different bytes"] = { EXT, raw("\212\1b") },
      ["true and 1"] = { true, 1 },
      ["an empty text and nil"] = { "", raw("\192") },
      ["2^53 and 2^53 + 1"] = { raw("\207\0\32\0\0\0\0\0\0"), raw("\207\0\32\0\0\0\0\0\1") },
      ["2^64 - 1 and 2^64 - 2"] = { raw("\207\255\255\255\255\255\255\255\255"),
        raw("\207\255\255\255\255\255\255\255\254") },
      ["2^64 - 1 and -1"] = { raw("\207\255\255\255\255\255\255\255\255"), -1 },
      ["0.1 in four bytes and in eight"] = { raw("\202\61\204\204\205"), 0.1 },
      ["texts that differ in their 65th byte"] = { ("x"):rep(64) .. "a", ("x"):rep(64) .. "b" },
      ["a long text and what stands for it"] = { ("x"):rep(65), "sha1:" .. ("x"):rep(40) },
      ["an array and its first element"] = { { 1 }, 1 },
    }) do
      it("keeps apart " .. what, function()
        assert.is_false(share("argument.v", { v = pair[1] }, { v = pair[2] }))
        assert.are.equal(2, jq:constraint("c").running)
      end)
    end

    it("reads the value at enqueueing as it was given, whatever it costs to read", function()
      limit(1, nil, { by = "argument.deep" })
      local deep = ("\145"):rep(20000) .. "\1"
      local ids = jq:enqueue_each("a", "\129\164deep" .. deep, "\129\164deep" .. deep, { deep = 1 })
      assert.are.same({ ids[1], ids[3] }, jq:start_ids("a"))
    end)
  end)
end)
