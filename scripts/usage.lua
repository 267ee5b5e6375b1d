-- Lists the keys of a constraint that are in use.
--
-- @arg    id      name
-- @arg    prefix  text? 1..64           only keys whose value begins so
-- @arg    cursor  cursor?
-- @arg    count   integer? 1..1000 = 100
-- @reply  page<Usage> keys
-- @errors INVALID field, NOTFOUND id
-- @flags  read
-- @role   viewer
-- @over   each
-- @http   GET /constraint/{id}/usage
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local constraints = require "jqlua.limits.constraints"
local constraintdoc = require "jqlua.limits.constraintdoc"
local keys = require "jqlua.base.keys"
local page = require "jqlua.find.page"

local spec = arguments.spec(HEAD)
local prefix = spec.prefix
local digits = spec.cursor or "" -- values are bytes, cursors are text
spec.cursor = check.from_hex(digits)
check.refuse(not spec.cursor and check.problem("cursor", check.CURSOR, digits))
local definition = constraints.load(spec.id)
check.refuse(not definition and check.missing("id", "constraint", spec.id))
check.refuse(prefix and not definition.b and "INVALID prefix: this constraint has no by")
local reply = page.documents(keys.KEYS_OF .. definition.n, spec, function(value)
  return constraintdoc.encode_key(definition, value)
end, nil, prefix and constraintdoc.ranges(definition, prefix))
reply[1] = check.to_hex(reply[1])
return reply
