local server = require "support.server"
local space = require "support.space"

describe("setup", function()
  local jq = space.each({ setup = false })

  local function setup(...)
    return jq:redis("EVALSHA", server.sha("settable", "setup"), ...)
  end
  local function refused(expected, ...)
    local before = jq:snapshot()
    local ok, message = pcall(setup, ...)
    assert.is_false(ok)
    assert.are.equal(expected, message)
    assert.are.same(before, jq:snapshot())
  end

  it("creates a namespace and answers its schema", function()
    assert.are.equal(6, jq:call("setup"))
    assert.are.equal(1, jq:redis("EXISTS", jq.name .. ":meta"))
    jq:enqueue("a")
  end)
  it("never makes the namespace itself a key", function()
    jq:call("setup")
    jq:enqueue("a")
    assert.are.equal(0, jq:redis("EXISTS", jq.name))
  end)
  it("changes nothing in a namespace that is there", function()
    jq:call("setup")
    jq:enqueue("a")
    jq:set({ done_ttl = 5 })
    jq:unchanged(function()
      assert.are.equal(6, jq:call("setup"))
    end)
  end)
  it("makes namespaces that know nothing of each other", function()
    jq:call("setup")
    local other = space.new()
    local id = jq:enqueue("a")
    assert.are.same({}, other:pick_ids("*"))
    assert.is_nil(other:get(id))
    other:close()
  end)
  it("refuses data of another schema", function()
    jq:call("setup")
    for _, schema in ipairs({ 4, 99 }) do
      jq:redis("SETRANGE", jq.name .. ":meta", 0, "\0" .. string.char(schema))
      jq:refuses("VERSION namespace " .. jq.name .. " holds data of schema " .. schema
        .. ", these scripts use 6: use scripts of that version", "setup")
    end
    jq.is_corrupt = true
  end)
  it("refuses to write over what is no namespace's", function()
    jq:redis("SET", jq.name .. ":meta", "something else")
    jq:refuses("VERSION ", "setup")
    jq.is_corrupt = true
  end)

  local expected = "INVALID namespace: expected {tag}, the tag 1 to 64 printable ASCII characters "
    .. "other than braces and blanks"
  for _, name in ipairs({ "jq", "{}", "{a b}", "{a", "a}", "x{a}", "{a}x", "{{a}}", "{a{b}", "{ä}", "{a\n}",
    "", "{" .. ("t"):rep(65) .. "}" }) do
    it("refuses the namespace " .. ("%q"):format(name), function()
      refused(expected, 2, name, name .. ":meta")
    end)
  end
  for _, tag in ipairs({ "a", ("t"):rep(64), "!~|\"#$%&'()*+,-./:;<=>?@[\\]^_`", "jq:15", "*", "[a-z]",
    "?" }) do
    it("takes the tag " .. tag, function()
      local other = space.new({ tag = tag })
      local id = other:enqueue("a")
      assert.are.equal("done", other:succeed(other:take("a")))
      assert.are.equal("done", other:status(id))
      other:close()
    end)
  end
end)
