local msgpack = require "support.msgpack"
local space = require "support.space"

describe("a job's headers", function()
  local jq = space.each()
  local NIL = msgpack.NIL
  local TRACE = { traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", ["x é"] = "" }

  local function enqueue(headers, more)
    local spec = space.with({ name = "a", headers = headers }, more)
    return jq:call("enqueue", spec, NIL)[1]
  end
  it("go with jobs that are told all that workers can be told", function()
    local first = enqueue(nil)
    jq:succeed(jq:take("a"), NIL)
    local id = enqueue(TRACE, { depends = { first }, max_runtime = 5 })
    jq:settle()
    local started = jq:take("a")
    assert.are.same({ id, { first }, 5, TRACE }, { started.id, started.depends, started.max_runtime, started.headers })
  end)
  it("do not make a repeated request another one", function()
    local function offer(headers, name)
      return { "enqueue", { request = "r" }, { name = name or "a", priority = 3, headers = headers }, NIL }
    end
    local first = jq:call(unpack(offer(TRACE)))
    assert.are.same(first, jq:call(unpack(offer({ traceparent = "other" }))))
    assert.are.same(first, jq:call(unpack(offer(nil))))
    jq:refuses("CONFLICT request", unpack(offer(TRACE, "b")))
  end)
end)
