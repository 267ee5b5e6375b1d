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

  describe("a pattern", function()
    it("stands for a beginning", function()
      local ids = jq:enqueue_all("mail.de", "mail", "mail.", "xmail.de", "mail.fr")
      assert.are.same({ ids[1], ids[3], ids[5] }, jq:pick_ids({ queues = "mail.*", count = 9 }))
    end)
    it("stands for an end, a middle, both", function()
      local ids = jq:enqueue_all("a.x", "a.b.x", "x", "x.a")
      assert.are.same({ ids[1], ids[2] }, jq:pick_ids({ queues = "*.x", count = 9 }))
      jq:release({ id = ids[1], attempt = 1 })
      jq:release({ id = ids[2], attempt = 1 })
      assert.are.same({ ids[2] }, jq:pick_ids({ queues = "a.*.x", count = 9 }))
      assert.are.same({ ids[1], ids[4] }, jq:pick_ids({ queues = "*a*", count = 9 }))
    end)
    it("takes other characters for what they are", function()
      local ids = jq:enqueue_all("a+b(1)", "aab1", "a+b(2)")
      assert.are.same({ ids[1], ids[3] }, jq:pick_ids({ queues = "a+b(*)", count = 9 }))
    end)
    it("used before its queues exist finds them later", function()
      assert.are.same({}, jq:pick_ids("mail.*"))
      local id = jq:enqueue("mail.de")
      assert.are.same({ id }, jq:pick_ids("mail.*"))
    end)
    it("used after its queues exist finds them at once when they are few", function()
      local id = jq:enqueue("mail.de")
      assert.are.same({ id }, jq:pick_ids("mail.*"))
    end)
    it("beside an overlapping name keeps the order", function()
      local ids = jq:enqueue_all("mail.de", "a", "mail.de")
      assert.are.same(ids, jq:pick_ids({ queues = { "mail.de", "*" }, count = 3 }))
    end)
    it("beside an overlapping pattern keeps the order", function()
      local ids = jq:enqueue_all("mail.de", "mail.fr", "a", "mail.de", "a", "mail.fr")
      assert.are.same(ids, jq:pick_ids({ queues = { "mail.*", "*.de", "*" }, count = 9 }))
    end)
    it("finds a better job that came into a queue in its middle", function()
      jq:enqueue_all({ name = "a", priority = 5 }, { name = "b", priority = 6 })
      local better = jq:enqueue({ name = "b", priority = 1 })
      assert.are.equal(better, jq:take("*").id)
    end)
    it("passes over queues that were drained by name", function()
      jq:enqueue_many({ name = "a" }, 5)
      jq:enqueue_many({ name = "b" }, 5)
      local id = jq:enqueue("c")
      jq:pick({ queues = { "a", "b" }, count = 10 })
      assert.are.same({ id }, jq:pick_ids("*"))
    end)
    it("finds a queue that was drained and filled again", function()
      jq:enqueue("a")
      jq:take("a")
      assert.are.same({}, jq:pick_ids("*"))
      local id = jq:enqueue("a")
      assert.are.same({ id }, jq:pick_ids("*"))
    end)
    it("passes over queues whose jobs were cancelled", function()
      local ids = jq:enqueue_all("a", "b")
      jq:cancel(ids[1])
      assert.are.same({ ids[2] }, jq:pick_ids("*"))
    end)
    it("keeps order while queues are paused and resumed", function()
      local ids = jq:enqueue_all("a", "b", "a", "b")
      jq:queue({ name = "a", paused = true })
      assert.are.equal(ids[2], jq:take("*").id)
      jq:queue({ name = "a", paused = false })
      assert.are.same({ ids[1], ids[3], ids[4] }, jq:pick_ids({ queues = "*", count = 9 }))
    end)
    it("finds what came into a paused queue before it was resumed", function()
      jq:queue({ name = "a", paused = true })
      local ids = jq:enqueue_all({ name = "a", priority = -1 }, "b")
      assert.are.same({ ids[2] }, jq:pick_ids("*"))
      jq:queue({ name = "a", paused = false })
      assert.are.same({ ids[1] }, jq:pick_ids("*"))
    end)
  end)

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

    it("are taken in order by *", function()
      assert.are.same(in_order(), pick_all({ queues = "*", count = 1000 }))
    end)
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
    it("may change while they are indexed", function()
      jq:pick("q*")
      jq:cancel(ids[7])
      local first = jq:enqueue({ name = "q0001", priority = -9 })
      local last = jq:enqueue({ name = "q1199", priority = -8 })
      local new = jq:enqueue({ name = "q9999", priority = -7 })
      jq:queue({ name = "q0014", paused = true })
      assert.are.same({ first, last, new, ids[21] }, { unpack(pick_all({ queues = "q*", count = 1000 }), 1,
        4) })
    end)
    it("that were drained by name cost a pick no more than some steps at a time", function()
      local names = {}
      for i = 1, 1190 do
        names[#names + 1] = string.format("q%04d", i)
        if #names == 100 or i == 1190 then
          jq:start({ queues = names, count = 1000 })
          names = {}
        end
      end
      assert.are.equal(10, #pick_all({ queues = "*", count = 100 }))
    end)
    it("leave a master's workers waiting for no more than the building", function()
      jq:register({ url = "http://w/", queues = "q*", max_jobs = 1 })
      local jobs
      for _ = 1, 5 do
        jobs = jq:assign()
        if jobs[1] then
          break
        end
        assert.are.equal(0, jobs.next_ms)
      end
      assert.are.equal(in_order()[1], jobs[1].id)
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

  describe("compared with a plain sort #once", function()
    local QUEUES = { "a", "b", "mail.de", "mail.fr", "mail", "x.de" }
    local ENTRIES = { "a", "b", "mail.de", "mail.fr", "*", "mail.*", "*.de", "m*", "nobody", "x.de", "*a*" }

    local function matches(entry, name)
      if not entry:find("*", 1, true) then
        return entry == name
      end
      return name:find("^" .. entry:gsub("[%.]", "%%."):gsub("%*", ".*") .. "$") ~= nil
    end

    --- What the contract says, with lists and loops.
    local function expected(waiting, paused, entries, count)
      local ready = {}
      for _, job in ipairs(waiting) do
        for _, entry in ipairs(entries) do
          if not paused[job.queue] and matches(entry, job.queue) then
            ready[#ready + 1] = job
            break
          end
        end
      end
      table.sort(ready, function(one, other)
        return one.priority < other.priority or (one.priority == other.priority and one.id < other.id)
      end)
      local ids = {}
      for i = 1, math.min(count, #ready) do
        ids[i] = ready[i].id
      end
      return ids
    end

    for seed = 1, 6 do
      it("gives the same jobs in the same order (" .. seed .. ")", function()
        math.randomseed(seed)
        local waiting, paused = {}, {}
        local function gone(id)
          for i, job in ipairs(waiting) do
            if job.id == id then
              return table.remove(waiting, i)
            end
          end
        end
        local running = {}
        for step = 1, 300 do
          local dice = math.random(10)
          local queue = QUEUES[math.random(#QUEUES)]
          if dice <= 4 then
            for _ = 1, math.random(4) do
              local priority = math.random(-2, 2)
              local id = jq:enqueue({ name = queue, priority = priority, timeout = 4000000 })
              waiting[#waiting + 1] = { id = id, queue = queue, priority = priority }
              queue = QUEUES[math.random(#QUEUES)]
            end
          elseif dice == 5 then
            paused[queue] = not paused[queue]
            jq:queue({ name = queue, paused = paused[queue] })
          elseif dice == 6 and waiting[1] then
            jq:cancel(gone(waiting[math.random(#waiting)].id).id)
          elseif dice == 7 and running[1] then
            local back = table.remove(running, math.random(#running))
            jq:release(back)
            waiting[#waiting + 1] = { id = back.id, queue = back.queue, priority = back.priority }
          else
            local entries = {}
            for i = 1, math.random(3) do
              entries[i] = ENTRIES[math.random(#ENTRIES)]
            end
            local count = math.random(6)
            local jobs = jq:pick({ queues = entries, count = count })
            assert.are.same(expected(waiting, paused, entries, count), space.ids(jobs),
              "step " .. step .. ", queues " .. table.concat(entries, " ") .. ", count " .. count)
            for _, job in ipairs(jobs) do
              gone(job.id)
              running[#running + 1] = job
            end
          end
        end
      end)
    end
  end)
end)
