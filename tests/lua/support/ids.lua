-- What is refused alike by the scripts whose arguments are ids.
local space = require "support.space"
local specs = require "support.specs"

local M = {}

function M.refused(it, jq, script)
  local expected = "INVALID ids: expected 1 to 1000 job ids, got "
  it("refuses a call without ids", function()
    jq():refuses(expected .. "0", script)
  end)
  it("refuses 1001 ids", function()
    local ids = {}
    for i = 1, 1001 do
      ids[i] = space.UNKNOWN_ID
    end
    jq():refuses_list(expected .. "1001", script, ids)
  end)
  it("refuses what is no id, by its place", function()
    jq():refuses('INVALID ids[1]: expected a job id of 14 hexadecimal digits, got "nonsense"', script,
      space.UNKNOWN_ID, "nonsense")
  end)
  it("refuses an empty id", function()
    jq():refuses('INVALID ids[0]: expected a job id of 14 hexadecimal digits, got ""', script, "")
  end)
  specs.namespace(it, jq, script, { space.UNKNOWN_ID })
end

return M
