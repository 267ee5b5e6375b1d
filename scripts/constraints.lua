-- Lists constraints, in order of id, with how much of each is in use.
--
-- @arg    ids      list<name>? 1..1000     those named; or
-- @arg    busiest  integer? 0..100         with sums over keys where there is `by`, and this many of the fullest
-- @arg    cursor   cursor?
-- @arg    count    integer? 1..1000 = 100
-- @reply  page<Constraint> constraints
-- @errors INVALID field
-- @flags  read
-- @role   viewer
-- @over   name
-- @http   GET /constraints
local arguments = require "jqlua.base.arguments"
local constraints = require "jqlua.limits.constraints"
local constraintdoc = require "jqlua.limits.constraintdoc"
local keys = require "jqlua.base.keys"
local page = require "jqlua.find.page"

local spec = arguments.spec(HEAD)
local is_only = spec.ids and #spec.ids == 1
local function document(id)
  local definition = constraints.load(id)
  return definition and constraintdoc.encode(definition, spec.busiest, is_only)
end

return page.listing(keys.CONSTRAINT_IDS, spec, document, { named = "ids" })
