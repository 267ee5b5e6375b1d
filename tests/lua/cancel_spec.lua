local space = require "support.space"
local specs = require "support.specs"

describe("cancel", function()
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

  it("keeps a queued job from being picked", function()
    local id = jq:enqueue("a")
    assert.are.equal("queued", jq:cancel(id))
    assert.are.equal("cancelled", jq:status(id))
    assert.are.same({}, jq:pick_ids("a"))
  end)
  it("keeps a scheduled job from coming", function()
    local id = jq:enqueue({ name = "a", delay = 5 })
    assert.are.equal("scheduled", jq:cancel(id))
    jq:pass(5)
    assert.are.same({}, jq:pick_ids("a"))
  end)
  it("keeps a retrying job from coming back", function()
    local id = jq:enqueue("a")
    jq:fail(jq:take("a"))
    assert.are.equal("retrying", jq:cancel(id))
    jq:pass(5)
    assert.are.same({}, jq:pick_ids("a"))
  end)
  it("takes a running job from its worker at once", function()
    local id = jq:enqueue("a")
    local job = jq:take("a")
    assert.are.equal("running", jq:cancel(id))
    assert.are.equal("cancelled", jq:status(id))
    assert.are.equal("CANCELLED", jq:heartbeat(job))
  end)
  it("keeps a job from expiring later", function()
    local id = jq:enqueue({ name = "a", expires_in = 5 })
    jq:cancel(id)
    jq:pass(5)
    jq:settle()
    assert.are.equal("cancelled", jq:status(id))
  end)
  it("leaves what is done as it is", function()
    local id = jq:enqueue("a")
    jq:succeed(jq:take("a"))
    jq:unchanged(function()
      assert.are.equal("done", jq:cancel(id))
    end)
  end)
  it("leaves a kept result as it is", function()
    local id = jq:enqueue({ name = "a", keep_result = true })
    jq:succeed(jq:take("a"), "\5")
    jq:unchanged(function()
      assert.are.equal("done", jq:cancel(id))
    end)
  end)
  it("leaves what failed as it is", function()
    local id = jq:enqueue({ name = "a", max_retry = 0 })
    jq:fail(jq:take("a"))
    jq:unchanged(function()
      assert.are.equal("error", jq:cancel(id))
    end)
  end)
  it("repeats safely", function()
    local id = jq:enqueue("a")
    jq:cancel(id)
    jq:unchanged(function()
      assert.are.equal("cancelled", jq:cancel(id))
    end)
  end)
  it("answers NOTFOUND for an unknown job", function()
    assert.are.equal("NOTFOUND", jq:cancel(space.UNKNOWN_ID))
  end)
  it("takes many, each with its answer", function()
    local ids = jq:enqueue_all("a", "b", { name = "c", delay = 1 })
    jq:take("a")
    assert.are.same({ "running", "queued", "scheduled", "NOTFOUND", "cancelled" },
      jq:call("cancel", { ids = { ids[1], ids[2], ids[3], space.UNKNOWN_ID, ids[2] } }))
  end)
  it("takes 1000 jobs", function()
    jq:call("cancel", { ids = jq:enqueue_many({ name = "a" }, 1000) })
    assert.are.same({ cancelled = 1000 }, jq:counts("a"))
  end)
  it("makes room at a registered worker", function()
    local worker = jq:register({ url = "http://w/" })
    local id = jq:enqueue("a")
    jq:assign()
    jq:cancel(id)
    assert.are.same({ 0, "ready" }, { jq:worker(worker).held, jq:worker(worker).state })
  end)
  it("takes the error of an earlier attempt along", function()
    local id = jq:enqueue("a")
    jq:fail(jq:take("a"), { message = "no" }, "\163bad")
    jq:cancel(id)
    assert.are.equal("bad", jq:get(id).error)
  end)

  describe("when cancel_running is off", function()
    before_each(function()
      jq:set({ cancel_running = false })
    end)

    it("does not take a running job", function()
      local id = jq:enqueue("a")
      jq:take("a")
      jq:unchanged(function()
        assert.are.equal("CONFLICT", jq:cancel(id))
      end)
    end)
    it("takes a running job by force", function()
      local id = jq:enqueue("a")
      jq:take("a")
      assert.are.equal("running", jq:cancel(id, true))
      assert.are.equal("cancelled", jq:status(id))
    end)
    it("takes all others", function()
      local ids = jq:enqueue_all("a", "a")
      jq:take("a")
      assert.are.same({ "CONFLICT", "queued" }, jq:call("cancel", { ids = ids, force = false }))
    end)
  end)

  local function with(field)
    return function(value)
      local spec = { ids = { space.UNKNOWN_ID } }
      spec[field] = value
      return { spec }
    end
  end
  local ids = "INVALID ids: expected a list of 1 to 1000 job ids, got "
  local many = {}
  for i = 1, 1001 do
    many[i] = space.UNKNOWN_ID
  end
  specs.refused_values(it, current, "cancel", with("ids"), {
    { "missing ids", nil, ids .. "nothing" },
    { "no ids", {}, ids .. "an empty list or map" },
    { "1001 ids", many, ids .. "a list" },
    { "one id that is no list", space.UNKNOWN_ID, ids .. '"' .. space.UNKNOWN_ID .. '"' },
    { "what is no id, by its place", { space.UNKNOWN_ID, "nonsense" },
      'INVALID ids[1]: expected a job id of 14 hexadecimal digits, got "nonsense"' },
  })
  specs.refused_values(it, current, "cancel", with("force"), {
    { "1 as force", 1, "INVALID force: expected true or false, got 1" },
  })
  specs.one_spec(it, current, "cancel", { ids = { space.UNKNOWN_ID } })

  it("cancels nothing when one id is wrong", function()
    local id = jq:enqueue("a")
    jq:refuses("INVALID ids[1]", "cancel", { ids = { id, "x" } })
    assert.are.equal("queued", jq:status(id))
  end)
end)
