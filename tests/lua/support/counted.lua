-- What specs of statistics do again and again, as functions for one namespace.
local luassert = require "luassert"
local keys = require "support.keys"
local msgpack = require "support.msgpack"

local KINDS = { "enqueued", "done", "failed", "lapsed", "error", "cancelled", "released", "moved" }

return function(jq)
  local M = {}

  function M.documents(spec)
    spec.by = spec.by or "hour"
    local found = {}
    for i, document in ipairs(jq:call("stats", spec)) do
      found[i] = msgpack.unpack(document)
    end
    return found
  end

  --- The one document there is.
  function M.one(spec)
    local found = M.documents(spec or {})
    luassert.are.equal(1, #found)
    return found[1]
  end

  --- What was counted: kinds with a count.
  function M.counts(document)
    local found = {}
    for _, kind in ipairs(KINDS) do
      if document[kind] ~= 0 then
        found[kind] = document[kind]
      end
    end
    return found
  end

  function M.counted(expected, spec)
    luassert.are.same(expected, M.counts(M.one(spec)))
  end

  function M.log_size()
    return jq:redis("STRLEN", keys(jq.name).LOG)
  end

  --- Enqueues until a call folds; returns how many calls it took.
  function M.fold()
    local calls = 0
    repeat
      jq:enqueue_all("filler", "other filler")
      calls = calls + 1
    until M.log_size() == 0
    return calls
  end

  return M
end
