-- A namespace whose name says a number: its ids say it, too. All other specs run so with JQ_NUMBER=7.
local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a namespace with a number", function()
  local jq
  local function named(name)
    jq = space.new({ tag = name })
    return jq
  end
  after_each(function()
    jq:close()
  end)

  it("has two digits of its own at the end of each id", function()
    named("two:10~4be09d")
    local first, second = jq:enqueue("a"), jq:enqueue("a", { unique = "u" })
    assert.are.equal("0a", first:sub(15))
    assert.are.equal("0a", second:sub(15))
    assert.is_true(first < second)
    assert.is_truthy(jq:register({ queues = "a" }):match("^w%x%x%x%x%x%x%x%x%x%x%x%x%x%x0a$"))
    assert.are.equal(space.START_MS, jq:get(first).created_ms)
    assert.are.same({ first, second }, jq:pick_ids({ queues = "a", count = 2 }))
    assert.are.equal(5, jq:call("setup"))
    assert.are.equal("0a", jq:enqueue("a"):sub(15))
  end)
  for tag, tail in pairs({
    ["t:1~0"] = "01", ["t:255~ff"] = "ff", ["a:b:16~a~1:2~b"] = "02", ["t:256~ff"] = "", ["t:0~ff"] = "", ["t:7~"] = "",
    ["t:7~x"] = "", ["7~ff"] = "", ["t:7~ff:"] = "", ["t:-7~ff"] = "",
  }) do
    it("is by its name " .. tag .. " " .. (tail == "" and "none" or tail), function()
      assert.are.equal(tail, named(tag):enqueue("a"):sub(15))
    end)
  end
  it("has no job that waits for one of another", function()
    named("mine:2~0")
    local here = jq:enqueue("a")
    for _, there in ipairs({ here:sub(1, 14), here:sub(1, 14) .. "01", here:sub(1, 14) .. "03" }) do
      local problem = "no such job: " .. there
      jq:refuses("NOTFOUND jobs[0].depends[0]: " .. problem, "enqueue", { name = "b", depends = { there } },
        msgpack.NIL)
      jq:refuses("NOTFOUND add[0]: " .. problem, "depend", { id = here, add = { there } })
    end
    jq:enqueue("b", { depends = { here } })
  end)
  it("knows no id that ends in two noughts, which no namespace gives", function()
    named("none:2~0")
    jq:refuses("INVALID ids[0]: expected a job id of 14 or 16 hexadecimal digits", "cancel",
      { ids = { ("0"):rep(16) } })
  end)
end)
