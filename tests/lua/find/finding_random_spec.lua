-- Random lives of jobs: what listings, tags and failures say is held against the documents of all jobs there are.
local listing = require "support.listing"
local msgpack = require "support.msgpack"
local space = require "support.space"

local RANKS = { queued = 1, scheduled = 2, blocked = 3, running = 4, retrying = 5, done = 6, error = 7, cancelled = 8 }
local QUEUES = { "a", "b", "long name: é" }
local TAGS = { "t", "u", "v" }
local GROUPS = { "g", "h" }
local STATES = { "queued", "scheduled", "running", "retrying", "done", "error", "cancelled" }

local function one_of(list)
  return list[math.random(#list)]
end

local function chance(percent)
  return math.random(100) <= percent
end

local function some_tags()
  local tags = {}
  for _, tag in ipairs(TAGS) do
    if chance(40) then
      tags[#tags + 1] = tag
    end
  end
  return tags[1] and tags or nil
end

local function some_where()
  return {
    queue = chance(30) and one_of(QUEUES) or nil, name = chance(20) and one_of(QUEUES) or nil,
    tag = chance(30) and one_of(TAGS) or nil, group = chance(20) and one_of({ "g", "h", "other", "expired" }) or nil,
    status = chance(30) and (chance(50) and one_of(STATES) or { one_of(STATES), one_of(STATES) }) or nil,
    message = chance(20) and one_of({ "no", "not started", "x" }) or nil,
    from_ms = chance(20) and space.START_MS + math.random(60000) or nil,
    to_ms = chance(20) and space.START_MS + math.random(60000) or nil,
  }
end

local function has(list, value)
  for _, other in ipairs(list or {}) do
    if other == value then
      return true
    end
  end
  return false
end

local function fits(where, document)
  local status = where.status
  return (not where.queue or document.queue == where.queue) and (not where.name or document.name == where.name)
    and (not where.tag or has(document.tags, where.tag))
    and (not where.group or document.status == "error" and document.group == where.group)
    and (not status or status == document.status or type(status) == "table" and has(status, document.status))
    and (not where.message or document.message ~= nil and document.message:find(where.message, 1, true) ~= nil)
    and document.created_ms >= (where.from_ms or 0) and document.created_ms < (where.to_ms or math.huge)
end

--- By what a job is listed: the parts that newest leaves alone, and those it turns round.
local function place(where, document)
  local fixed, turned
  if where.tag then
    fixed, turned = "", ""
  elseif where.group then
    fixed, turned = "", ("%020d"):format(document.ended_ms)
  else
    local part = document.status == "done" and not document.result and 1 or 0
    fixed = document.queue .. "\0" .. RANKS[document.status] .. part
    local by = document.status == "queued" and document.priority + 2 ^ 31 or document.ended_ms or document.due_ms or 0
    turned = ("%020d"):format(by)
  end
  return fixed, turned .. document.id
end

local function expected_ids(documents, where, newest)
  local found = {}
  for _, document in ipairs(documents) do
    if fits(where, document) then
      local fixed, turned = place(where, document)
      found[#found + 1] = { fixed, turned, document.id }
    end
  end
  table.sort(found, function(a, b)
    if a[1] ~= b[1] then
      return a[1] < b[1]
    elseif newest then
      a, b = b, a
    end
    return a[2] < b[2]
  end)
  local ids = {}
  for i, entry in ipairs(found) do
    ids[i] = entry[3]
  end
  return ids
end

describe("over random lives #once", function()
  local seed = tonumber(os.getenv("JQ_SEED") or os.time())
  local jq, ids

  before_each(function()
    math.randomseed(seed)
    jq = space.new()
    ids = {}
    jq:set({ done_max = 8, error_ttl = 40, cancelled_max = 3, result_ttl = 20 })
    jq:constrain({ id = "c", concurrency = 2 }, { queue = "b" })
  end)
  after_each(function()
    jq:close()
  end)

  local OPERATIONS = {
    function()
      ids[#ids + 1] = jq:enqueue({
        name = one_of(QUEUES), queue = one_of(QUEUES), priority = math.random(-2, 2), tags = some_tags(),
        delay = chance(20) and math.random(10) or nil, max_retry = math.random(0, 1), keep_result = chance(30),
        expires_in = chance(20) and math.random(20) or nil, unique = chance(10) and "key" or nil,
        timeout = math.random(5, 30),
      })
    end,
    function()
      for _, job in ipairs(jq:start({ queues = "*", count = math.random(4) })) do
        if chance(30) then
          jq:succeed(job, "\1")
        elseif chance(60) then
          jq:fail(job, { group = chance(70) and one_of(GROUPS) or nil, message = one_of({ "no", "x" }) })
        elseif chance(20) then
          jq:release(job, math.random(0, 3))
        end
      end
    end,
    function()
      jq:pass(math.random(5))
    end,
    function()
      if ids[1] then
        local operation = one_of({ "retry", "discard", "cancel" })
        jq:call(operation, { ids = { one_of(ids), one_of(ids) } })
      end
    end,
    function()
      if chance(20) then
        listing.change(jq, one_of({ "retry", "discard", "cancel" }), some_where(), { count = math.random(3) })
      end
    end,
    function()
      if ids[1] then
        jq:call("change", { id = one_of(ids), tags = some_tags() or {} }, "")
      end
    end,
  }

  --- Documents of all jobs there are.
  local function documents()
    local there = {}
    for _, id in ipairs(ids) do
      local document = jq:get(id)
      if document and not there[id] then
        there[id] = true
        there[#there + 1] = document
      end
    end
    return there
  end

  local function check()
    jq:settle()
    local there = documents()
    for _ = 1, 5 do
      local where, newest = some_where(), chance(50)
      local spec = { where = where, newest = newest, count = one_of({ 1, 2, 3, 1000 }), brief = true }
      assert.are.same(expected_ids(there, where, newest), listing.ids(jq, where, spec))
    end
    local tags, groups = {}, {}
    for _, document in ipairs(there) do
      for _, tag in ipairs(document.tags or {}) do
        tags[tag] = (tags[tag] or 0) + 1
      end
      if document.status == "error" then
        groups[document.group] = (groups[document.group] or 0) + 1
      end
    end
    for i, pair in ipairs(jq:call("tags", {})) do
      if i > 1 then
        assert.are.equal(tags[pair[1]], pair[2])
        tags[pair[1]] = nil
      end
    end
    for i, blob in ipairs(jq:call("failures", {})) do
      if i > 1 then
        local document = msgpack.unpack(blob)
        assert.are.equal(groups[document.group], document.count)
        groups[document.group] = nil
      end
    end
    assert.are.same({ {}, {} }, { tags, groups })
  end

  it("listings, tags and failures are what the documents say (JQ_SEED=" .. string.format("%d", seed) .. ")", function()
    for step = 1, tonumber(os.getenv("JQ_STEPS") or 400) do
      one_of(OPERATIONS)()
      if step % 10 == 0 then
        check()
      end
    end
  end)
end)
