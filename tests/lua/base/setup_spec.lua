local space = require "support.space"

describe("setup", function()
  local jq = space.each({ setup = false })

  it("creates a namespace and answers its schema", function()
    assert.are.equal(11, jq:call("setup"))
    assert.are.equal(1, jq:redis("EXISTS", jq.name .. ":meta"))
    jq:enqueue("a")
  end)
  it("changes nothing in a namespace that is there", function()
    jq:call("setup")
    jq:enqueue("a")
    jq:set({ done_ttl = 5 })
    jq:unchanged(function()
      assert.are.equal(11, jq:call("setup"))
    end)
  end)
  it("refuses data of another schema", function()
    jq:call("setup")
    for _, schema in ipairs({ 4, 99 }) do
      jq:redis("SETRANGE", jq.name .. ":meta", 0, "\0" .. string.char(schema))
      jq:refuses("VERSION namespace " .. jq.name .. " holds data of schema " .. schema
        .. ", these scripts use 11: use scripts of that version", "setup")
    end
    jq.is_corrupt = true
  end)
  it("refuses to write over what is no namespace's", function()
    jq:redis("SET", jq.name .. ":meta", "something else")
    jq:refuses("VERSION ", "setup")
    jq.is_corrupt = true
  end)

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
