-- What this call has looked at of constraints. It stands in a module of its own since the functions of the others are
-- lazy: tables of lazy modules are made for the few calls that need them, and these are needed by every job under a
-- constraint.
local M = {}

M.limits = {} -- by number (module limits.limitrecord); false where the constraint is gone
M.keys = {} -- by name (module limits.keyrecord)
-- By lane its best job, {priority, id}, both nil for none (module limits.lanes); by queue and name, with a zero byte
-- between, the definitions that may match (module limits.constraints).
M.found = {}
M.asked = {} -- how much matching the jobs that come with this call take, and how many they are

return M
