-- Creates a constraint, or replaces it whole.
--
-- @arg    id           name              its id; a namespace has at most 1,000
-- @arg    match        Matcher           which jobs
-- @arg    by           By?               one key for each value, with a limit of its own
-- @arg    concurrency  integer? 1..1e9   how many jobs may run at once
-- @arg    rate         Rate?             how many may start in a period
-- @arg    shared       flag?             in a partition of a cluster: it has its part of concurrency and limit
-- @arg    declared     name?             digest of a program's declaration: nothing changes if it is the same
-- @arg    actor        actor?
-- @argv   spec, match
-- @reply  Constraint
-- @errors INVALID field, INVALID match.place, FULL id
-- @flags  write
-- @role   operator
-- @over   all
-- @http   PUT /constraint/{id}
local arguments = require "jqlua.base.arguments"
local keys = require "jqlua.base.keys"
local meta = require "jqlua.base.meta"
local rollout = require "jqlua.limits.rollout"
local check = require "jqlua.base.check"
local constraints = require "jqlua.limits.constraints"
local constraintdoc = require "jqlua.limits.constraintdoc"
local constraintspec = require "jqlua.limits.constraintspec"
local trail = require "jqlua.access.trail"
local transition = require "jqlua.life.transition"

check.refuse(#ARGV ~= 2 and "INVALID arguments: expected a spec and a matcher, got " .. #ARGV)
local spec = arguments.spec(HEAD, true)
local new = constraintspec.parse(spec)
local old = constraints.load(new.i)
if old and new.d and old.d == new.d then
  return constraintdoc.encode(old) -- declared as before: later changes stay
end
new.d = new.d or old and old.d
check.refuse(not old and redis.call("HLEN", keys.CONSTRAINTS) >= constraints.MOST
  and "FULL id: cannot create " .. check.show(new.i) .. ": there are " .. constraints.MOST .. " constraints, the limit")

local state = meta.state
-- Where it counts the same jobs under the same keys, the keys' state stays, and only limits change.
local is_same = old and old.g == new.g and old.p == new.p and cmsgpack.pack(old.bg) == cmsgpack.pack(new.bg)
if is_same then
  new.n = old.n
else
  -- Its number is the version in which it was created.
  meta.set(meta.VERSION, state[meta.VERSION] + 1)
  new.n = state[meta.VERSION]
  meta.set(meta.ADDED, new.n)
  if old then
    constraints.delete(old)
  end
end
constraints.save(new)
if old and (not is_same or old.c ~= new.c or old.l ~= new.l) then
  rollout.begin(old.n)
end
meta.save_constraints()
local is_plain, match = pcall(cmsgpack.unpack, ARGV[2])
spec.match = is_plain and match or nil
trail.note("constrain", new.i, spec)
transition.commit()
return constraintdoc.encode(new)
