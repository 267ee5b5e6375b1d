-- What is refused alike by every script that takes one spec.
local luassert = require "luassert"
local msgpack = require "support.msgpack"
local server = require "support.server"
local space = require "support.space"

local M = {}

--- Each wrong value of a field, and the beginning of the error.
---@param jq fun(): table the test's namespace
---@param make fun(value: any): any[] arguments of the call
function M.refused_values(it, jq, script, make, cases)
  for _, case in ipairs(cases) do
    local what, value, expected = case[1], case[2], case[3]
    it("refuses " .. what, function()
      jq():refuses_list(expected, script, make(value))
    end)
  end
end

--- Wrong values of one field: the error names the field, what was expected and the value.
---@param path string of the field in the error
---@param words string[] what the error must name of the expected
---@param cases table[] {what, value, the value as shown}
function M.refused_field(it, jq, script, make, path, words, cases)
  for _, case in ipairs(cases) do
    local what, value, got = case[1], case[2], case[3]
    it("refuses " .. what, function()
      local message = jq():refuses_list("INVALID " .. path .. ": expected ", script, make(value))
      for _, word in ipairs(words) do
        luassert.is_truthy(message:find(word, 1, true), message .. " does not name " .. word)
      end
      luassert.is_truthy(message:find(", got " .. got, 1, true), message .. " does not show " .. got)
    end)
  end
end

--- The tests of a script whose only argument is a spec.
---@param valid table a spec that is accepted but for what each test changes
function M.one_spec(it, jq, script, valid)
  local function with(field, value)
    local spec = {}
    for name, other in pairs(valid) do
      spec[name] = other
    end
    spec[field] = value
    return spec
  end

  it("refuses a call without a spec", function()
    jq():refuses("INVALID spec: expected one argument, a MessagePack map, got 0 arguments", script)
  end)
  it("refuses more than one argument", function()
    jq():refuses("INVALID spec: expected one argument, a MessagePack map, got 2 arguments", script, valid,
      valid)
  end)
  it("refuses an empty spec argument", function()
    jq():refuses("INVALID spec: expected one MessagePack map, got no bytes", script, "")
  end)
  it("refuses a spec that is no map", function()
    jq():refuses("INVALID spec: expected one MessagePack map, got 104", script, "h")
  end)
  it("refuses a list as spec", function()
    jq():refuses("INVALID spec: expected a map with text as keys, got the key 1", script, { "a" })
  end)
  it("refuses a truncated spec", function()
    jq():refuses("INVALID spec: not MessagePack", script, msgpack.pack(with("zzzzzzz", "x")):sub(1, -2))
  end)
  it("refuses bytes behind the spec", function()
    jq():refuses("INVALID spec: expected one MessagePack map, got more bytes behind the first value", script,
      msgpack.pack(valid) .. msgpack.NIL)
  end)
  it("refuses a spec that announces more entries than it has", function()
    jq():refuses("INVALID spec: not MessagePack", script, "\223\127\255\255\255")
  end)
  it("refuses a spec nested 100,000 deep", function()
    jq():refuses("INVALID spec: not MessagePack", script, ("\145"):rep(100000) .. msgpack.NIL)
  end)
  it("refuses bin where text is expected", function()
    jq():refuses("INVALID spec: not MessagePack, or with bin, ext", script, with("zzzzzzz", msgpack.bin("a")))
  end)
  it("refuses ext values", function()
    jq():refuses("INVALID spec: not MessagePack, or with bin, ext", script, with("zzzzzzz",
      msgpack.raw("\212\1a")))
  end)
  it("refuses an unknown field by its name", function()
    jq():refuses("INVALID zzzzzzz: unknown field, expected one of ", script, with("zzzzzzz", 1))
  end)
  M.namespace(it, jq, script, { valid })
end

--- The tests that every script but setup shares.
---@param valid any[] arguments
function M.namespace(it, jq, script, valid)
  it("answers VERSION in a namespace that is not set up", function()
    local empty = space.new({ setup = false })
    empty:refuses_list("VERSION namespace " .. empty.name .. " is not set up: load the scripts, or run setup",
      script, valid)
    empty:close()
  end)
  it("answers VERSION to data of another schema", function()
    jq():redis("SETRANGE", jq().name .. ":meta", 0, "\0\99")
    jq():refuses_list("VERSION namespace " .. jq().name .. " holds data of schema 99", script, valid)
    jq().is_corrupt = true
  end)
  it("refuses keys other than a namespace and its meta", function()
    local before = jq():snapshot()
    for _, keys in ipairs({ { "0" }, { "1", jq().name }, { "2", jq().name, jq().name .. ":other" },
      { "3", jq().name, jq().name .. ":meta", jq().name .. ":j" }, { "2", jq().name .. ":meta",
        jq().name } }) do
      local sent = { server.sha("settable", script), unpack(keys) }
      for _, argument in ipairs(valid) do
        sent[#sent + 1] = type(argument) == "table" and msgpack.pack(argument) or argument
      end
      local ok, message = pcall(server.shared().call_list, server.shared(), "EVALSHA", sent)
      luassert.is_false(ok)
      luassert.are.equal("INVALID KEYS: expected exactly two keys, <namespace> and <namespace>:meta", message)
    end
    luassert.are.same(before, jq():snapshot())
  end)
end

return M
