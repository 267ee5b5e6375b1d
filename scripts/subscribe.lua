-- Creates a webhook, or replaces it but for its secrets: who is told when jobs end.
--
-- The one called `notify` has secrets alone: what is told to jobs' own addresses is signed with them.
--
-- @arg    id       name
-- @arg    url      url? 0..2000         http or https, without user and `#`
-- @arg    match    Matcher?             which jobs; default: all
-- @arg    on       set<done|error|cancelled|skipped>? 1..4  which ends; default: all
-- @arg    secrets  list<secret>? 1..2   what goes to it is signed with each
-- @arg    actor    actor?
-- @argv   spec, match
-- @reply  Webhook
-- @errors INVALID field, INVALID match.place, FULL id, FULL match
-- @flags  write
-- @role   operator
-- @over   all
-- @http   PUT /webhook/{id}
local arguments = require "jqlua.base.arguments"
local registry = require "jqlua.webhooks.registry"
local trail = require "jqlua.access.trail"

local spec = arguments.spec(HEAD, #ARGV == 2)
local hook = registry.parse(spec)
registry.put(hook, spec.secrets)
local is_plain, match = pcall(cmsgpack.unpack, ARGV[2] or "\192")
spec.match = is_plain and match or nil
trail.note("subscribe", hook.i, spec)
return registry.document(hook, false)
