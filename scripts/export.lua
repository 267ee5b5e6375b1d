-- Everything the namespace has, as records for import, some at a time.
--
-- What is written meanwhile may be missing, or be there as it was.
--
-- @arg    cursor  cursor? 0..1e9        as the last reply gave it; empty at the end
-- @arg    count   integer? 1..1000 = 100  how many keys, about
-- @reply  page<record> records
-- @errors INVALID field
-- @flags  read
-- @role   admin
-- @over   none
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local copying = require "jqlua.upkeep.copying"

local spec = arguments.spec(HEAD)
local at = copying.position(spec.cursor or "")
check.refuse(not at and check.problem("cursor", check.CURSOR, spec.cursor))
return copying.page(at, spec.count or 100)
