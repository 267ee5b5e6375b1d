local space = require "support.space"

describe("register", function()
  local jq = space.each()

  it("gives ids that no job has", function()
    local worker = jq:register({})
    assert.are_not.equal(worker:sub(2), jq:enqueue("a"))
  end)
  for _, url in ipairs({ "https://host", "http://[::1]:80/x", "http://127.0.0.1:9", "http://host/~me@home" }) do
    it("takes the url " .. url, function()
      assert.are.equal(url, jq:worker(jq:register({ url = url })).url)
    end)
  end

  describe("secrets", function()
    local first, second = "whsec_" .. ("A"):rep(32), "whsec_" .. ("b"):rep(84) .. "+A=="
    it("are told to who pushes, and to nobody else", function()
      local id = jq:register({ url = "http://w/", secrets = { first, second } })
      jq:enqueue("a")
      assert.are.equal(first .. " " .. second, jq:assign()[1].secrets)
      for _, value in pairs(jq:worker(id)) do
        assert.is_nil(tostring(value):find("whsec", 1, true))
      end
    end)
  end)

  describe("a key", function()
    local KEY = "0123456789ab"
    local function grant(more)
      local spec = { id = KEY, digest = ("0a"):rep(32), name = "box", roles = { "worker" } }
      for name, value in pairs(more or {}) do
        spec[name] = value
      end
      jq:call("grant", spec)
    end

    it("that is revoked brings its workers nothing more, and others what they take", function()
      grant()
      jq:register({ url = "http://w/1", key = KEY, max_jobs = 2 })
      local ids = jq:enqueue_all("a", "a")
      jq:succeed(jq:assign({ limit = 1 })[1])
      jq:call("revoke", { id = KEY })
      assert.are.same({}, space.ids(jq:assign()))
      local other = jq:register({ url = "http://w/2" })
      local job = jq:assign()[1]
      assert.are.same({ ids[2], other, "" }, { job.id, job.to, job.key })
    end)
    it("that comes later wakes a master for who registered with it", function()
      jq:register({ url = "http://w/", key = KEY })
      jq:enqueue("a")
      assert.are.same({}, space.ids(jq:assign({ wait = { on = "push", ms = 10000 } })))
      assert.is_false(jq:is_woken("push"))
      grant()
      assert.is_true(jq:is_woken("push"))
      assert.are.equal(1, #jq:assign())
    end)
    it("stays with a worker that refused a name", function()
      grant()
      local id = jq:register({ url = "http://w/", key = KEY, max_jobs = 5 })
      jq:enqueue("b")
      local job = jq:assign()[1]
      jq:call("refuse", { worker = id, jobs = { { job.id, job.token } }, why = "unknown" })
      jq:enqueue("a")
      assert.are.equal(KEY, jq:assign()[1].key)
      jq:enqueue("a")
      jq:call("revoke", { id = KEY })
      assert.are.same({}, space.ids(jq:assign()))
    end)
  end)

  it("does not show a secret of a url that it refuses", function()
    local message = jq:refuses("INVALID url", "register", { name = "w", queues = "*", url = "ftp://u:secret@host" })
    assert.is_nil(message:find("secret"))
  end)

  describe("the same url again", function()
    it("gives the older worker's jobs back at once, no retry spent", function()
      jq:register({ url = "http://w/", max_jobs = 3 })
      local ids = jq:enqueue_all({ name = "a", max_retry = 0 }, { name = "b", max_retry = 0 })
      assert.are.equal(2, #jq:assign())
      jq:register({ url = "http://w/", max_jobs = 3 })
      assert.are.same({ "queued", "queued" }, jq:statuses(ids))
      assert.are.equal(0, jq:get(ids[1]).retry_count)
    end)
  end)

  describe("a worker without a sign of life", function()
    it("loses a thousand jobs in bounded steps", function()
      local id = jq:register({ url = "http://w/", max_jobs = 1000 })
      jq:enqueue_many({ name = "a", timeout = 100 }, 1000)
      jq:assign({ limit = 1000 })
      jq:pass(30)
      local _, moved = jq:tick(100)
      assert.are.equal(100, moved)
      jq:settle()
      assert.is_nil(jq:worker(id))
      assert.are.equal(0, jq:queue("a").running)
    end)
    it("lives by the setting, also when the clock goes back before anybody looked", function()
      local id = jq:register({ url = "http://w/" })
      jq:pass(7)
      jq:set({ worker_ttl = 5 })
      jq:pass(-1)
      jq:settle()
      assert.is_nil(jq:worker(id))
    end)
  end)

  it("refuses a 201st pattern of a day", function()
    for i = 1, 199 do
      jq:pick("pattern" .. i .. ".*")
    end
    jq:register({ queues = "pattern1.*", url = "http://w/" })
    jq:refuses("FULL queues: more than 200 different patterns were in use today", "register",
      { name = "w", queues = "new.*" })
  end)
end)
