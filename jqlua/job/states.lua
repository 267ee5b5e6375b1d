-- The states of a job, and which may follow which. In Redis a state is one letter, in the record and in the key of
-- the set that holds the queue's jobs in that state. The score there says what the state waits for. Running and ended
-- jobs share a set, in which each state has a band of scores: so an attempt ends with one command.
local M = {}

M.QUEUED = "q" -- ready, in its queue's plain set, by priority: the next pick may take it
M.IN_LANE = "w" -- ready, in a lane (module limits.lanes), by priority: it starts when all its keys have room
M.SCHEDULED = "s" -- waits for its time, which is its score
M.BLOCKED = "b" -- waits for other jobs (module links.links)
M.RUNNING = "r" -- held by a worker until its lease ends, which is its score
M.RETRYING = "t" -- failed, and waits for its backoff to end, which is its score
M.KEPT = "k" -- done, with a result that is kept until its score
M.DONE = "d" -- done, when its score says; its result is gone, or was never kept
M.ERROR = "e" -- failed for good, or expired, when its score says
M.CANCELLED = "c" -- cancelled on request, when its score says
M.SKIPPED = "n" -- not needed: it was to run only if another failed, and none did; when its score says

-- Sets of states, for loops over them.
M.ALL = "qwsbrtkdecn"
M.WAITING = "qwsbt"
M.UNENDED = "qwsbrt"
M.ENDED = "kdecn"

M.SETS = "qwsbtr" -- states whose letter is that of a set
local SHARED = "rkdecn" -- those of the set of running jobs, in the order of their bands
local BAND = 2 ^ 46 -- ms: a band is wider than any moment

--- Where a state's scores begin, and where those of the next one in its set do.
---@return number base 0 if it has a set of its own
---@return number top
function M.band(state)
  local place = string.find(SHARED, state, 1, true)
  if not place then
    return 0, math.huge
  end
  return (place - 1) * BAND, place * BAND
end

--- The letter of the set that holds the jobs in a state.
function M.set_of(state)
  return string.find(SHARED, state, 1, true) and M.RUNNING or state
end

-- As clients know them.
local NAMES = {
  q = "queued", w = "queued", s = "scheduled", b = "blocked", r = "running", t = "retrying", k = "done", d = "done",
  e = "error", c = "cancelled", n = "skipped",
}

---@param state string
---@return string name as clients know it
function M.name(state)
  return NAMES[state]
end

---@param name any
---@return string? states that clients know by this name
function M.of_name(name)
  local states = ""
  for state in M.ALL:gmatch(".") do
    if NAMES[state] == name then
      states = states .. state
    end
  end
  return states ~= "" and states or nil
end

--- Whether a state is one of a set.
---@param state string
---@param among string
---@return boolean
function M.is_of(state, among)
  return string.find(among, state, 1, true) ~= nil
end

-- Allowed transitions, a line each: both letters and a reason. "-" is before the job was created. One text, since a
-- script would have to build a table at every call.
local CHANGES = [[

-q it came, and may start
-w it came, and starts when its keys have room
-s it came, and waits for its time
-b it came, and depends on jobs that have not ended
qr a worker takes it
wr a worker takes it, and it takes its units
qw a constraint came that it is under
wq the last constraint that it was under went
qq it was changed
ww it was changed, or its lane is another one now
qs it was changed, to wait for a time
ws it was changed, to wait for a time
sq its time came
sw its time came
bq the last job that it waited for ended
bw the last job that it waited for ended
bs the last job that it waited for ended, before its time
bn the last job that it waited for ended, and none failed
qe it expired
we it expired
se it expired
be it expired, or a job that it depends on failed
qc it was cancelled
wc it was cancelled
sc it was cancelled
bc it was cancelled
tc it was cancelled
rk it succeeded, and its result is kept
rd it succeeded
rt its attempt failed or lapsed, and it has retries left
re its attempt failed or lapsed, for good
rq its worker gave it back, or moved it on
rw its worker gave it back, or moved it on
rs its worker gave it back or moved it on, for later
rb it waits for others, and runs again when these have ended
rc it was cancelled while it ran
tq its backoff is over, or somebody retried it
tw its backoff is over, or somebody retried it
kd the time of its result is over
eq somebody retried it
ew somebody retried it
cq somebody retried it
cw somebody retried it
nq somebody retried it
nw somebody retried it
]]

--- Whether a transition is allowed.
---@param change string both letters
---@return boolean
function M.may_follow(change)
  return string.find(CHANGES, "\n" .. change .. " ", 1, true) ~= nil
end

return M
