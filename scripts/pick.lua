-- Gives a worker the next jobs and their leases.
--
-- @arg    worker   worker                the id of a registered one, or any name
-- @arg    queues   list<queue> 1..100    names and patterns, in order; a text is a list of one
-- @arg    count    integer? 1..1000 = 1  how many, at most
-- @arg    order    priority|ordered?  between queues
-- @arg    without  set<name>? 1..100     names of jobs that the worker does not take
-- @arg    request  token?                the same token gives the same jobs again
-- @arg    wait     Wait?                 go to sleep if there is nothing
-- @reply  picked                        {next_ms, document, argument, document, argument, ...}
-- @errors INVALID field, NOTFOUND worker, FULL queues
-- @flags  drain, function
-- @role   worker
-- @role   server with wait
-- @over   pick
-- @http   POST /pick
-- @param  timeout  seconds? 0..300 = 0   how long to wait for a job
local meta = require "jqlua.base.meta"
local picker = require "jqlua.pick.picker"
local wishes = require "jqlua.pick.wishes"

local wish, token = wishes.of_pick()
meta.open()
return picker.pick(picker.prepare(wish, token, { nil, nil, nil }))
