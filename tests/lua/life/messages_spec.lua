local space = require "support.space"

-- A report must not fail by the words of an error: what a program said is kept as far as it is text.
local KEPT = {
  ["no such host"] = "no such host",
  [""] = "",
  ["a\0b\n"] = "a\0b\n",
  ["caf\195\169 \240\159\152\128"] = "caf\195\169 \240\159\152\128",
  ["\255\254x"] = "??x",
  ["half \195"] = "half ?",
  ["half a pair \237\160\128."] = "half a pair ???.",
  ["\192\128 \244\144\128\128"] = "?? ????",
  ["ok\128\195\169\226\130"] = "ok?\195\169??",
}

describe("the message of", function()
  local jq = space.each()
  local function taken(track)
    jq:enqueue({ name = "a", max_retry = 0, track = track })
    return jq:take("a")
  end

  it("a failure is kept as text", function()
    for message, kept in pairs(KEPT) do
      local job = taken()
      assert.are.equal("error", jq:fail(job, { message = message }))
      assert.are.equal(kept, jq:get(job.id).message)
    end
  end)
  it("a failure is kept up to 65536 bytes, cut between two characters", function()
    for message, kept in pairs({
      [("x"):rep(70000)] = ("x"):rep(65536),
      ["x" .. ("\195\169"):rep(40000)] = "x" .. ("\195\169"):rep(32767),
      [("\255"):rep(70000)] = ("?"):rep(65536),
    }) do
      local job = taken()
      jq:fail(job, { message = message })
      assert.is_true(kept == jq:get(job.id).message)
    end
  end)
  it("a note is kept as text, up to 1024 bytes", function()
    for message, kept in pairs(KEPT) do
      local job = taken()
      local notes = { progress = 1, message = message .. ("\195\169"):rep(600) }
      jq:call("heartbeat", { worker = "worker", jobs = { { job.id, job.token, notes } } })
      local shown = jq:get(job.id).progress_message
      assert.are.equal(kept, shown:sub(1, #kept))
      assert.is_true(#shown == 1024 or #shown == 1023)
      jq:cancel(job.id)
    end
  end)
end)
