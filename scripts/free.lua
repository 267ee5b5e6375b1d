-- Frees a unique key; its job goes on without one.
--
-- @arg    unique  name                  the key
-- @arg    actor   actor?
-- @reply  {job_id: job}
-- @errors INVALID unique, NOTFOUND unique (it is free)
-- @flags  drain
-- @role   pusher, operator
-- @over   any
-- @http   DELETE /unique/{unique}
local arguments = require "jqlua.base.arguments"
local check = require "jqlua.base.check"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"
local unique = require "jqlua.links.unique"

local spec = arguments.spec(HEAD)
local id = unique.free(spec.unique)
check.refuse(not id and check.missing("unique", "unique key", spec.unique))
trail.note("free", spec.unique, spec)
transition.commit()
return id
