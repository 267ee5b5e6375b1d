-- Dependencies by the thousand.
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a job that depends on very many", function()
  local jq = space.each()

  it("waits for each of them, and has their results", function()
    local ids = {}
    for start = 0, 4 do
      for i, id in ipairs(jq:enqueue_many({ name = "a", keep_result = true }, 1000)) do
        ids[1000 * start + i] = id
      end
    end
    local last = jq:enqueue({ name = "b", depends = ids, tags = { "big" } })
    local document = jq:get(last)
    assert.are.same({ "blocked", 5000, 100 }, { document.status, #document.depends, #document.waits_for })
    for _ = 1, 5 do
      for _, job in ipairs(jq:pick({ worker = "w", queues = "a", count = 1000 })) do
        jq:succeed(job)
      end
    end
    local found
    for _ = 1, 200 do
      found = found or jq:take("b")
    end
    assert.are.same({ last, ids }, { found.id, found.depends })
    jq:succeed(found)
    assert.are.same({ "done", { "big" } }, { jq:get(last).status, jq:get(last).tags })
  end)
  it("is refused where the jobs of a call have too many in all", function()
    local ids, arguments = {}, {}
    for i = 1, 10 do
      for j, id in ipairs(jq:enqueue_many({ name = "a" }, 1000)) do
        ids[1000 * i - 1000 + j] = id
      end
    end
    for i = 1, 11 do
      arguments[2 * i - 1], arguments[2 * i] = msgpack.pack({ name = "b", depends = ids }), msgpack.NIL
    end
    jq:refuses_list("INVALID jobs[10].depends: more than 100000 dependencies in one call", "enqueue", arguments)
  end)
end)
