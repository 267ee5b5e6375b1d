local msgpack = require "support.msgpack"
local space = require "support.space"

describe("picking over many queues", function()
  local jq = space.each()

  --- Picks until next_ms is not 0, as a client does.
  local function pick_all(spec)
    local ids = {}
    for _ = 1, 100 do
      local jobs = jq:pick(spec)
      for _, job in ipairs(jobs) do
        ids[#ids + 1] = job.id
      end
      if jobs.next_ms ~= 0 and #jobs < (spec.count or 1) then
        return ids
      end
    end
    error("there is always more")
  end

  describe("1200 queues that exist already #once", function()
    local ids
    before_each(function()
      local arguments = {}
      ids = {}
      for i = 1, 1200 do
        arguments[#arguments + 1] = { name = string.format("q%04d", i), priority = i % 7 }
        arguments[#arguments + 1] = msgpack.NIL
        if #arguments == 2000 or i == 1200 then
          for _, id in ipairs(space.made(jq:call_list("enqueue", arguments))) do
            ids[#ids + 1] = id
          end
          arguments = {}
        end
      end
    end)

    local function in_order()
      local sorted = {}
      for i, id in ipairs(ids) do
        sorted[i] = { id, i % 7 }
      end
      table.sort(sorted, function(a, b)
        return a[2] < b[2] or (a[2] == b[2] and a[1] < b[1])
      end)
      for i, pair in ipairs(sorted) do
        sorted[i] = pair[1]
      end
      return sorted
    end
    it("are indexed step by step for a new pattern, with next_ms 0 until then", function()
      for _ = 1, 2 do
        local jobs = jq:pick("q*")
        assert.are.same({ 0, 0 }, { jobs.next_ms, #jobs })
      end
      assert.are.equal(in_order()[1], jq:take("q*").id)
    end)
    it("are taken in order by a new pattern", function()
      assert.are.same(in_order(), pick_all({ queues = "q*", count = 1000 }))
    end)
  end)

  describe("more than 200 patterns", function()
    it("in one day are refused", function()
      for i = 1, 199 do
        jq:pick("p" .. i .. "*")
      end
      jq:pass(86000)
      jq:refuses("FULL queues: more than 200 different patterns were in use today", "pick",
        { worker = "w", queues = "new*" })
    end)
    it("leave those in use as they are", function()
      for i = 1, 199 do
        jq:pick("p" .. i .. "*")
      end
      local id = jq:enqueue("p7x")
      assert.are.same({ id }, jq:pick_ids("p7*"))
    end)
    it("are taken when one was not used for a day", function()
      for i = 1, 199 do
        jq:pick("p" .. i .. "*")
      end
      jq:pass(86401)
      local id = jq:enqueue("newer")
      assert.are.same({ id }, jq:pick_ids("new*"))
      assert.are.same({ jq:enqueue("p1x") }, jq:pick_ids("p1*"))
    end)
  end)
end)
