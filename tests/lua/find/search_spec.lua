local msgpack = require "support.msgpack"
local space = require "support.space"

describe("search", function()
  local jq = space.each()
  local function search(text, count)
    return msgpack.unpack(jq:call("search", { text = text, count = count }))
  end

  it("finds what has a text in its name, whatever its case, those first that begin with it", function()
    jq:enqueue({ name = "mail.send", queue = "my mail", tags = { "Mailing" } })
    jq:enqueue({ name = "mailer" })
    jq:call("constrain", { id = "per mail", concurrency = 1 }, msgpack.pack({ name = "a" }))
    jq:call("register", { announce = true, name = "mailer-1", queues = { "a" }, running = {} })
    local found = search("mail")
    assert.are.same({ "mailer", "my mail" }, found.queues)
    assert.are.same({ "Mailing" }, found.tags)
    assert.are.same({ "per mail" }, found.constraints)
    assert.are.same({ { id = "mailer-1", name = "mailer-1" } }, found.workers)
    assert.are.same({}, found.more)
  end)
  it("tells no more of a kind than asked for, and that there may be more", function()
    jq:enqueue_all("a1", "a2", "a3")
    local found = search("A", 2)
    assert.are.same({ { "a1", "a2" }, { "queues" } }, { found.queues, found.more })
  end)
  it("does not go through very many to the end", function()
    for i = 1, 25 do
      jq:enqueue_many({ name = "x" }, 1)
      local jobs = {}
      for at = 1, 100 do
        jobs[at] = ("q%04d"):format(i * 100 + at)
      end
      jq:enqueue_all(unpack(jobs))
    end
    local found = search("zz")
    assert.are.same({ {}, { "queues", "names" } }, { found.queues, found.more })
    assert.are.same({ "q2600" }, search("q2600").queues) -- what begins so is found at once
  end)
end)
