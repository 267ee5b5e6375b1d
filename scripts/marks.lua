-- Lists marks, newest first.
--
-- @arg    from_ms  moment_ms?            of then or later
-- @arg    to_ms    moment_ms?            of before
-- @arg    cursor   cursor?
-- @arg    count    integer? 1..1000 = 100
-- @reply  page<Mark> marks
-- @errors INVALID field
-- @flags  read
-- @role   viewer
-- @over   first
-- @http   GET /marks
local arguments = require "jqlua.base.arguments"
local marks = require "jqlua.find.marks"

return marks.page(arguments.spec(HEAD))
