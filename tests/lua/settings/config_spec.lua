local msgpack = require "support.msgpack"
local space = require "support.space"

describe("config", function()
  local jq = space.each()

  local DEFAULTS = {
    retry_base = 1, retry_cap = 3600, retry_jitter = 0.1, result_ttl = 3600, result_grace = 60,
      request_ttl = 600,
    done_ttl = 86400, done_max = 10000, error_ttl = 2592000, error_max = 10000, cancelled_ttl = 86400,
    cancelled_max = 10000, cancel_running = true, worker_ttl = 30, lease_grace = 0, events_max = 0, stats = true,
    trail_max = 10000, queues_max = 100000, names_max = 100000, tags_max = 1000000, keys_max = 1000000,
    all_keys_max = 5000000, late_after = 10,
  }
  local RANGES = {
    retry_base = { 0, 1e10 }, retry_cap = { 0, 1e10 }, retry_jitter = { 0, 1 }, result_ttl = { 1, 1e10 },
    result_grace = { 0, 1e10 }, request_ttl = { 1, 86400 }, done_ttl = { 0, 1e10 }, done_max = { 0, 1e9 },
    error_ttl = { 0, 1e10 }, error_max = { 0, 1e9 }, cancelled_ttl = { 0, 1e10 }, cancelled_max = { 0, 1e9 },
    worker_ttl = { 1, 86400 }, lease_grace = { 0, 86400 }, events_max = { 0, 1e7 }, trail_max = { 0, 1e6 },
    queues_max = { 1, 1e9 }, names_max = { 1, 1e9 }, tags_max = { 1, 1e9 }, keys_max = { 1, 1e9 },
    all_keys_max = { 1, 1e9 }, late_after = { 1, 1e10 },
  }

  it("has the defaults of the protocol", function()
    assert.are.same(DEFAULTS, msgpack.unpack(jq:call("config", {})))
  end)
  it("answers all settings after a change", function()
    local expected = {}
    for name, value in pairs(DEFAULTS) do
      expected[name] = value
    end
    expected.retry_base, expected.cancel_running = 2.5, false
    assert.are.same(expected, jq:set({ retry_base = 2.5, cancel_running = false }))
    assert.are.same(expected, msgpack.unpack(jq:call("config", {})))
  end)
  it("gives settings that are unset their defaults again, also at once with others", function()
    jq:set({ retry_base = 9, done_max = 0, events_max = 100, trail_max = 3, cancel_running = false })
    jq:enqueue("a")
    local after = msgpack.unpack(jq:call("config", {
      set = { retry_base = 5 }, unset = { "done_max", "events_max", "trail_max", "cancel_running", "stats" },
    }))
    local expected = {}
    for name, value in pairs(DEFAULTS) do
      expected[name] = value
    end
    expected.retry_base = 5
    assert.are.same(expected, after)
    assert.are.same(expected, msgpack.unpack(jq:call("config", {})))
    assert.are.equal(0, jq:redis("EXISTS", jq.name .. ":events"))
    local id = jq:take("a").id
    jq:succeed({ id = id, attempt = 1 })
    assert.are.equal("done", jq:status(id)) -- what every call must know of the settings is right again, too
  end)
  it("applies to jobs that wait already", function()
    local id = jq:enqueue("a")
    jq:set({ retry_base = 7, retry_jitter = 0 })
    jq:fail(jq:take("a"))
    assert.are.equal(space.START_MS + 7000, jq:get(id).due_ms)
  end)

  for name, range in pairs(RANGES) do
    it(name .. " takes its least and its most", function()
      assert.are.equal(range[1], jq:set({ [name] = range[1] })[name])
      assert.are.equal(range[2], jq:set({ [name] = range[2] })[name])
    end)
  end

  describe("describe", function()
    local function described(spec)
      spec = spec or {}
      spec.describe = true
      local by_name = {}
      for _, about in ipairs(msgpack.unpack(jq:call("config", spec))) do
        by_name[about.name] = about
      end
      return by_name
    end

    it("has a word for every setting", function()
      local names = {}
      for name, about in pairs(described()) do
        names[name] = about.value
        assert.are.equal(about.default, about.value)
        assert.is_true(#about.meaning > 10)
        assert.are.equal("string", type(about.unit))
      end
      assert.are.same(DEFAULTS, names)
    end)
    it("tells types and ranges", function()
      local all = described()
      for name, range in pairs(RANGES) do
        assert.are.same(range, { all[name].least, all[name].most })
        assert.are.equal(name:find("_max$") and "integer" or "number", all[name].type)
      end
      assert.are.same({ "boolean", nil, nil }, { all.stats.type, all.stats.least, all.stats.most })
    end)
    it("tells which of them a queue may have", function()
      local of_queues = {}
      for name, about in pairs(described()) do
        of_queues[#of_queues + 1] = about.queues and name or nil
      end
      table.sort(of_queues)
      assert.are.same({
        "cancelled_max", "cancelled_ttl", "done_max", "done_ttl", "error_max", "error_ttl", "late_after", "lease_grace",
        "result_grace", "result_ttl", "retry_base", "retry_cap", "retry_jitter",
      }, of_queues)
    end)
    it("tells values in force, after a change in the same call as well", function()
      local about = described({ set = { done_max = 5, stats = false } })
      assert.are.same({ 5, 10000 }, { about.done_max.value, about.done_max.default })
      assert.are.same({ false, true }, { about.stats.value, about.stats.default })
    end)
  end)
end)
