local msgpack = require "support.msgpack"
local space = require "support.space"

describe("config", function()
  local jq = space.each()

  local DEFAULTS = {
    retry_base = 1, retry_cap = 3600, retry_jitter = 0.1, result_ttl = 3600, result_grace = 60,
      request_ttl = 600,
    done_ttl = 86400, done_max = 10000, error_ttl = 2592000, error_max = 10000, cancelled_ttl = 86400,
    cancelled_max = 10000, cancel_running = true, worker_ttl = 30, events_max = 0, stats = true,
    trail_max = 10000, late_after = 10,
  }

  it("has the defaults of the protocol", function()
    assert.are.same(DEFAULTS, msgpack.unpack(jq:call("config", {})))
  end)
  it("applies to jobs that wait already", function()
    local id = jq:enqueue("a")
    jq:set({ retry_base = 7, retry_jitter = 0 })
    jq:fail(jq:take("a"))
    assert.are.equal(space.START_MS + 7000, jq:get(id).due_ms)
  end)

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
  end)
end)
