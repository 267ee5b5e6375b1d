-- Recounts indexes against job records, a step at a time.
--
-- @arg    cursor  cursor? = 0          as the last reply gave it; "0" at the beginning and at the end
-- @arg    count   integer? 1..1000 = 100  how many keys, about
-- @reply  page<text> problems
-- @errors INVALID field
-- @flags  read
-- @role   operator
-- @over   turn
local arguments = require "jqlua.base.arguments"
local budget = require "jqlua.job.budget"
local check = require "jqlua.base.check"
local audit = require "jqlua.upkeep.audit"
local findings = require "jqlua.upkeep.findings"

-- All keys of one SCAN must be checked.
local AT_ONCE = 10

local spec = arguments.spec(HEAD)
local cursor = spec.cursor or "0"
local count = spec.count or 100
check.refuse((not cursor:find("^%d+$") or #cursor > 20) and check.problem("cursor", check.CURSOR, cursor))
-- SCAN's pattern: a namespace may have special characters.
local pattern = KEYS[1]:gsub("[%*%?%[%]%^%\\]", "\\%0") .. ":*"
budget.pay(budget.RESERVE) -- for the rest of the last page, and for counting units
if cursor == "0" then
  audit.bounds()
end
repeat
  local page = redis.call("SCAN", cursor, "MATCH", pattern, "COUNT", math.min(count, AT_ONCE))
  cursor, count = page[1], count - AT_ONCE
  for _, key in ipairs(page[2]) do
    audit.key(key:sub(#KEYS[1] + 2))
  end
until cursor == "0" or count <= 0 or not budget.pay(budget.LOOK)
return { cursor, unpack(findings.list) }
