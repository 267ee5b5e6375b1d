local msgpack = require "support.msgpack"
local server = require "support.server"
local space = require "support.space"

local DIGEST = ("ab"):rep(32)
local OTHER = ("cd"):rep(32)

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
  it("granted again with the same secret are the same", function()
    local first = grant("0123456789ab")
    jq:pass(5)
    assert.are.same(first, grant("0123456789ab", { name = "another" }))
    jq:refuses("CONFLICT id: another key has the id", "grant", spec_of("0123456789ab", { digest = OTHER }))
  end)
  it("come in pages, in order of id", function()
    for _, id in ipairs({ "00000000000c", "00000000000a", "00000000000b" }) do
      grant(id)
    end
    local page, cursor = listed({ count = 2 })
    assert.are.same({ "00000000000a", "00000000000b" }, { page[1].id, page[2].id })
    page, cursor = listed({ count = 2, cursor = cursor })
    assert.are.same({ "00000000000c", "" }, { page[1].id, cursor })
  end)
  it("revoked leave nothing behind, and masters are told", function()
    jq:set({ trail_max = 0 })
    local before = jq:snapshot()
    local listener = server.connect()
    listener:call("SSUBSCRIBE", jq.name .. ":api-keys")
    grant("0123456789ab")
    jq:call("touch", { ids = { "0123456789ab" } })
    assert.are.equal("0123456789ab", listener:read()[3])
    assert.are.equal(1, jq:call("revoke", { id = "0123456789ab" }))
    assert.are.equal("0123456789ab", listener:read()[3])
    assert.are.same({}, space.changes(before, jq:snapshot()))
    jq:refuses("NOTFOUND id: no such key: 0123456789ab", "revoke", { id = "0123456789ab" })
    listener:close()
  end)
  it("know when they were used last", function()
    grant("0123456789ab")
    assert.is_nil(listed()[1].used_ms)
    jq:set_clock(2000000)
    assert.are.equal(1, jq:call("touch", { ids = { "0123456789ab", "ffffffffffff" } }))
    assert.are.equal(2000000, listed()[1].used_ms)
    assert.are.equal(0, jq:redis("HEXISTS", jq.name .. ":api-key-uses", "ffffffffffff"))
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
  it("stand in two places, which audit compares", function()
    grant("0123456789ab")
    jq:redis("ZREM", jq.name .. ":api-key-ids", "0123456789ab")
    assert.are.same({ "there are 1 keys of the API and 0 ids of them" }, jq:audit())
    jq:redis("DEL", jq.name .. ":api-keys")
  end)
end)
