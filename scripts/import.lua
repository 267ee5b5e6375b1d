-- Writes records of an export, in order, into a namespace that is not set up; the last of them sets it up.
--
-- Importing the same records again is harmless.
--
-- @arg    records  list<record> 1..1000
-- @argv   records...
-- @reply  {records: integer}            how many there were
-- @errors INVALID KEYS, INVALID namespace, INVALID records[i], VERSION, CONFLICT
-- @flags  write
-- @role   admin
-- @over   none
local check = require "jqlua.base.check"
local copying = require "jqlua.upkeep.copying"
local meta = require "jqlua.base.meta"

local MOST_RECORDS = 1000

check.refuse(meta.name_problem())
check.refuse((#ARGV < 1 or #ARGV > MOST_RECORDS)
  and "INVALID records: expected 1 to " .. MOST_RECORDS .. " records, got " .. #ARGV)
local records = copying.read(ARGV)
if not copying.is_repeated(records) then
  copying.write(records)
end
return #records
