-- What happened to a job so far, oldest first.
--
-- @arg    id  job
-- @argv   id
-- @reply  History
-- @errors INVALID id, NOTFOUND id
-- @flags  read
-- @role   viewer, pusher
-- @over   job
-- @http   GET /job/{id}/history
local find = require "jqlua.find.find"
local history = require "jqlua.life.history"

return history.encode(find.named())
