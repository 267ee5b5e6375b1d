local msgpack = require "support.msgpack"
local space = require "support.space"

local DIGEST = ("ab"):rep(32)

describe("keys", function()
  local jq = space.each()

  local function spec_of(id, more)
    local spec = { id = id, digest = DIGEST, name = "deploy", roles = { "pusher", "viewer" } }
    for name, value in pairs(more or {}) do
      spec[name] = value
    end
    return spec
  end

  local function grant(id, more)
    return msgpack.unpack(jq:call("grant", spec_of(id, more)))
  end

  local function listed(spec)
    local reply = jq:call("keys", spec or {})
    local found = {}
    for i = 2, #reply do
      found[i - 1] = msgpack.unpack(reply[i])
    end
    return found, reply[1]
  end

  it("are granted and listed, without a digest unless it is asked for", function()
    jq:set_clock(1000000)
    local given = grant("0123456789ab", { queues = { "mail", "x*" }, ttl = 60, rate = 2.5 })
    assert.are.same({
      id = "0123456789ab", name = "deploy", roles = { "pusher", "viewer" }, queues = { "mail", "x*" }, rate = 2.5,
      created_ms = 1000000, expires_ms = 1060000,
    }, given)
    assert.are.same({ given }, listed())
    given.digest = DIGEST
    assert.are.same({ given }, listed({ digests = true }))
  end)
  it("revoked leave nothing behind", function()
    jq:set({ trail_max = 0 })
    local before = jq:snapshot()
    grant("0123456789ab")
    jq:call("touch", { ids = { "0123456789ab" } })
    assert.are.equal(1, jq:call("revoke", { id = "0123456789ab" }))
    assert.are.same({}, space.changes(before, jq:snapshot()))
    jq:refuses("NOTFOUND id: no such key: 0123456789ab", "revoke", { id = "0123456789ab" })
  end)
  it("are at most a thousand #once", function()
    for i = 1, 1000 do
      grant(string.format("%012x", i))
    end
    jq:refuses("FULL id: there are 1000 keys", "grant", spec_of("ffffffffffff"))
    grant(string.format("%012x", 1))
  end)
  it("are refused without being shown", function()
    local ok, message = pcall(jq.call, jq, "grant", spec_of("0123456789ab", { digest = "jq_secret" }))
    assert.is_falsy(ok or tostring(message):find("jq_secret", 1, true))
  end)
end)
