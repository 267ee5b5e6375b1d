-- Tells where the best job stands that a pick of these queues could start.
--
-- @arg    queues  list<queue> 1..100
-- @reply  head                          [priority, id], or [] where there is none
-- @errors INVALID field
-- @flags  read, function
-- @role   worker
-- @over   head
local check = require "jqlua.base.check"
local meta = require "jqlua.base.meta"
local outlook = require "jqlua.queue.outlook"
local wishes = require "jqlua.pick.wishes"

meta.open()
local entries, problem = wishes.read_queues()
check.refuse(problem)
local priority, id = outlook.best(entries)
return id and { priority, id } or {}
