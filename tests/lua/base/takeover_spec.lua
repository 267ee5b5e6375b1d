-- Another server takes over, and does not know the last ids that were given.
local space = require "support.space"

describe("a server that takes over", function()
  local jq = space.each()
  --- What is written down of the server before, which was another one.
  local function take_over(run_id)
    jq:redis("MSET", jq.name .. ":server", run_id or "another", jq.name .. ":at-functions", "elsewhere",
      jq.name .. ":at-scripts", "elsewhere")
  end
  local function moment_of(id)
    local number = tonumber(id:sub(1, 14), 16)
    return (number - number % 1024) / 1024
  end
  local function left_out_s(id)
    return (moment_of(id) - jq.now_ms) / 1000
  end

  it("leaves out 65 to 131 seconds of ids, once", function()
    local first = jq:enqueue("a")
    assert.are.equal(0, left_out_s(first))
    take_over()
    local second, third = jq:enqueue("a"), jq:enqueue("a")
    assert.is_true(left_out_s(second) >= 65 and left_out_s(second) <= 132)
    assert.are.equal(tonumber(second:sub(1, 14), 16) + 1, tonumber(third:sub(1, 14), 16))
    jq:pass(132)
    assert.are.equal(0, left_out_s(jq:enqueue("a")))
  end)
  it("gives none that the one before may have given, with a clock that is a minute behind", function()
    for _ = 1, 10 do
      local known = jq:redis("GET", jq.name .. ":seq") or ("0"):rep(14)
      local lost = jq:enqueue("a")
      jq:redis("SET", jq.name .. ":seq", known)
      take_over()
      jq:pass(-60)
      assert.is_true(jq:enqueue("a") > lost)
      jq:pass(300)
    end
  end)
  it("leaves out no more when the note of the other form of calls is missing", function()
    jq:redis("SET", jq.name .. ":server", "unknown")
    for _ = 1, 3 do
      jq:enqueue("a")
      jq:register({ queues = "a" })
    end
    assert.is_true(left_out_s(jq:enqueue("a")) <= 2 * 132)
  end)
  it("is none when only its Lua is new", function()
    jq:enqueue("a")
    take_over(jq:redis("GET", jq.name .. ":server"))
    assert.are.equal(0, left_out_s(jq:enqueue("a")))
  end)
  it("is none for the other form of calls", function()
    local other = jq.form == "scripts" and "functions" or "scripts"
    jq:enqueue("a")
    jq.form = other
    assert.are.equal(0, left_out_s(jq:enqueue("a")))
  end)
end)
