-- Recounts indexes against job records, a step at a time.
--
-- @arg    cursor  cursor?
-- @arg    count   integer? 1..1000 = 100  how many keys, about
-- @reply  page<text> problems
-- @errors INVALID field
-- @flags  read
-- @role   operator
-- @over   each
local arguments = require "jqlua.base.arguments"
local budget = require "jqlua.job.budget"
local check = require "jqlua.base.check"
local audit = require "jqlua.upkeep.audit"
local findings = require "jqlua.upkeep.findings"

-- All keys of one SCAN must be checked.
local AT_ONCE = 10

local spec = arguments.spec(HEAD)
local from, count = spec.cursor or "", spec.count or 100
check.refuse((from:find("%D") or #from > 20) and check.problem("cursor", check.CURSOR, from))
-- SCAN's pattern: a namespace may have special characters.
local pattern = KEYS[1]:gsub("[%*%?%[%]%^%\\]", "\\%0") .. ":*"
budget.pay(budget.RESERVE) -- for the rest of the last page, and for counting units
if from == "" then
  audit.bounds()
end
local cursor = from == "" and "0" or from -- as SCAN has it
repeat
  local page = redis.call("SCAN", cursor, "MATCH", pattern, "COUNT", math.min(count, AT_ONCE))
  cursor, count = page[1], count - AT_ONCE
  for _, key in ipairs(page[2]) do
    audit.key(key:sub(#KEYS[1] + 2))
  end
until cursor == "0" or count <= 0 or not budget.pay(budget.LOOK)
return { cursor == "0" and "" or cursor, unpack(findings.list) }
