-- Says why a job waits: what holds it, what is ahead of it, when it may start.
--
-- @arg    id  job
-- @argv   id
-- @reply  Explanation
-- @errors INVALID id, NOTFOUND id
-- @flags  read
-- @role   viewer, pusher
-- @over   job
-- @http   GET /job/{id}/explain
local find = require "jqlua.find.find"
local explanation = require "jqlua.find.explanation"

return explanation.encode(find.named())
