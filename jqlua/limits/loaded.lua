-- What this call has read of constraints.
local M = {}

M.limits = PER_CALL -- by number (module limits.limitrecord); false where the constraint is gone
M.keys = PER_CALL -- by name (module limits.keyrecord)
-- By lane its best job, {priority, id}, both nil for none (module limits.lanes); by queue and name, with a zero byte
-- between, the definitions that may match (module limits.constraints).
M.lookups = PER_CALL
M.matching_cost = PER_CALL -- conditions to test for the jobs of this call, and how many jobs they are

return M
