local msgpack = require "support.msgpack"
local space = require "support.space"
local specs = require "support.specs"

describe("register", function()
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

  it("answers the worker's id", function()
    assert.is_truthy(jq:register({}):match("^w[0-9a-f]+$"))
  end)
  it("puts the worker on the list", function()
    local id = jq:register({ name = "box 1", queues = { "a", "b.*" }, url = "http://box1:8000/jq",
      max_jobs = 7 })
    assert.are.same({ id = id, name = "box 1", queues = { "a", "b.*" }, url = "http://box1:8000/jq",
      max_jobs = 7, held = 0, seen_ms = space.START_MS, state = "ready", refused = {}, since_ms = space.START_MS,
      lapsed = 0, running = {}, request = "" }, jq:worker(id))
  end)
  it("takes one job at a time when nothing is said", function()
    assert.are.equal(1, jq:worker(jq:register({ url = "http://w/" })).max_jobs)
  end)
  it("without url makes a worker that only picks", function()
    local id = jq:register({})
    jq:enqueue("a")
    assert.are.equal("pulling", jq:worker(id).state)
    assert.are.same({}, space.ids(jq:assign()))
    assert.are.equal(1, #jq:pick({ worker = id, queues = "a" }))
  end)
  it("gives each worker its own id", function()
    assert.are_not.equal(jq:register({}), jq:register({}))
  end)
  it("gives ids that no job has", function()
    local worker = jq:register({})
    assert.are_not.equal(worker:sub(2), jq:enqueue("a"))
  end)
  it("takes one queue, or all", function()
    assert.are.same({ "a" }, jq:worker(jq:register({ queues = "a" })).queues)
    assert.are.same({ "*" }, jq:worker(jq:register({ queues = "*" })).queues)
  end)
  for _, url in ipairs({ "https://host", "http://[::1]:80/x?y=1#z", "http://127.0.0.1:9",
    "http://user@host/" }) do
    it("takes the url " .. url, function()
      assert.are.equal(url, jq:worker(jq:register({ url = url })).url)
    end)
  end

  describe("the same url again", function()
    it("replaces the older worker", function()
      local old = jq:register({ url = "http://w/" })
      local new = jq:register({ url = "http://w/" })
      assert.is_nil(jq:worker(old))
      assert.are.equal("ready", jq:worker(new).state)
    end)
    it("gives the older worker's jobs back at once, no retry spent", function()
      jq:register({ url = "http://w/", max_jobs = 3 })
      local ids = jq:enqueue_all({ name = "a", max_retry = 0 }, { name = "b", max_retry = 0 })
      assert.are.equal(2, #jq:assign())
      jq:register({ url = "http://w/", max_jobs = 3 })
      assert.are.same({ "queued", "queued" }, jq:statuses(ids))
      assert.are.equal(0, jq:get(ids[1]).retry_count)
    end)
    it("makes the older worker's attempts LOST", function()
      local old = jq:register({ url = "http://w/" })
      jq:enqueue("a")
      local job = jq:assign()[1]
      jq:register({ url = "http://w/" })
      assert.are.equal("LOST", jq:succeed(job))
      assert.has_error(function()
        jq:heartbeat(job, old)
      end)
    end)
    it("lets the new worker have the names that the older one refused", function()
      local old = jq:register({ url = "http://w/" })
      local id = jq:enqueue("a")
      jq:assign()
      jq:call("refuse", { worker = old, jobs = { jq:held(id) }, why = "unknown" })
      local new = jq:register({ url = "http://w/" })
      assert.are.equal(new, jq:assign()[1].to)
    end)
    it("is another worker when the url differs at all", function()
      local one = jq:register({ url = "http://w/" })
      jq:register({ url = "http://w/2" })
      assert.is_truthy(jq:worker(one))
    end)
  end)

  describe("a worker without a sign of life", function()
    it("is dropped after worker_ttl", function()
      local id = jq:register({ url = "http://w/" })
      jq:pass(29.999)
      jq:settle()
      assert.is_truthy(jq:worker(id))
      jq:pass(0.001)
      jq:settle()
      assert.is_nil(jq:worker(id))
    end)
    it("loses its jobs, which fail with reason timeout", function()
      local id = jq:register({ url = "http://w/", max_jobs = 2 })
      local ids = jq:enqueue_all({ name = "a", timeout = 100 }, { name = "a", timeout = 100, max_retry = 0 })
      jq:assign()
      jq:pass(30)
      jq:settle()
      assert.are.same({ "retrying", "error" }, jq:statuses(ids))
      assert.are.same({ "timeout", 1 }, { jq:get(ids[1]).reason, jq:get(ids[1]).retry_count })
      assert.is_nil(jq:worker(id))
    end)
    it("is dropped though it only picks", function()
      local id = jq:register({ queues = "*", max_jobs = 1 })
      jq:pass(70)
      jq:settle()
      assert.is_nil(jq:worker(id))
    end)
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
    it("lives by the setting, also when that comes later", function()
      local id = jq:register({ url = "http://w/" })
      jq:set({ worker_ttl = 5 })
      jq:pass(5)
      jq:settle()
      assert.is_nil(jq:worker(id))
    end)
    it("lives by the setting, also when the clock goes back before anybody looked", function()
      local id = jq:register({ url = "http://w/" })
      jq:pass(7)
      jq:set({ worker_ttl = 5 })
      jq:pass(-1)
      jq:settle()
      assert.is_nil(jq:worker(id))
    end)
    it("is not dropped when the clock is set back", function()
      local id = jq:register({ url = "http://w/" })
      jq:pass(-100)
      jq:settle()
      assert.is_truthy(jq:worker(id))
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

  local function with(field)
    return function(value)
      local spec = { name = "w", queues = "a" }
      spec[field] = value
      return { spec }
    end
  end
  local name = "INVALID name: expected text of 1 to 255 bytes, valid UTF-8, no control characters, got "
  local url = "INVALID url: expected an http or https URL of at most 2000 bytes, got "
  local max_jobs = "INVALID max_jobs: expected an integer from 1 to 1000, got "
  specs.refused_values(it, current, "register", with("name"), {
    { "a missing name", nil, name .. "nothing" },
    { "an empty name", "", name .. '""' },
    { "a number as name", 1, name .. "1" },
  })
  specs.refused_values(it, current, "register", with("queues"), {
    { "missing queues", nil, 'INVALID queues: expected "*", a name, or a list of 1 to 100 names' },
    { "no queues", {}, 'INVALID queues: expected "*", a name, or a list of 1 to 100 names' },
    { "a wrong queue, by its place", { "a", 5 }, "INVALID queues[1]: expected text of 1 to 255 bytes" },
  })
  specs.refused_values(it, current, "register", with("url"), {
    { "an empty url", "", url .. '""' },
    { "a url without a scheme", "host:80/", url .. '"host:80/"' },
    { "a url of another scheme", "ftp://host/", url .. '"ftp://host/"' },
    { "a url without a host", "http://", url .. '"http://"' },
    { "a url with a blank", "http://host/a b", url },
    { "a url with a line break", "http://host/\r\nx: y", url },
    { "a url of 2001 bytes", "http://" .. ("h"):rep(1994), url },
    { "a number as url", 5, url .. "5" },
  })
  specs.refused_values(it, current, "register", with("max_jobs"), {
    { "0 jobs", 0, max_jobs .. "0" },
    { "1001 jobs", 1001, max_jobs .. "1001" },
    { "half a job", 1.5, max_jobs .. "1.5" },
    { "jobs that are no number", msgpack.NAN, max_jobs },
    { "text as jobs", "1", max_jobs .. '"1"' },
  })
  specs.one_spec(it, current, "register", { name = "w", queues = "a" })
end)
