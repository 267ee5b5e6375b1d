-- Finds what has a text in its name: a few of each kind, those first that begin with it.
--
-- @arg    text   text 1..255
-- @arg    count  integer? 1..20 = 5  of each kind
-- @reply  Found
-- @errors INVALID field
-- @flags  read
-- @role   viewer
-- @over   found
-- @http   GET /search
local arguments = require "jqlua.base.arguments"
local search = require "jqlua.find.search"

local spec = arguments.spec(HEAD)
return search.encode(spec.text, spec.count or 5)
