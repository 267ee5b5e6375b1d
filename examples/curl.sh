#!/bin/sh
# All with nothing but curl, in JSON. Needs a worker with `tasks:jq`.
# sh curl.sh [URL of the master]
set -eu
JQ=${1:-http://127.0.0.1:8400}

call() { # call METHOD path [body]
  curl -sS --fail-with-body -X "$1" "$JQ$2" -H 'accept: application/json' \
    ${3:+-H 'content-type: application/json' -d "$3"}
}
enqueue() { call POST /job "$1" | sed 's/.*"job_id" *: *"\([^"]*\)".*/\1/'; }

# Enqueue a job and wait for its result.
job=$(enqueue '{"name": "add", "argument": [40, 2], "keep_result": true}')
call GET "/job/$job/polling?timeout=10" >/dev/null
call GET "/job/$job/result"
echo

# At most two calls at once to each partner. Acme has asked for a break, so its calls wait.
call PUT /constraint/calls '{"match": {"name": "call-partner"}, "by": "argument.partner", "concurrency": 2}'
echo
call POST /constraint/calls/hold '{"by": "acme", "seconds": 60}' >/dev/null
job=$(enqueue '{"name": "call-partner", "argument": {"partner": "acme"}, "keep_result": true}')
call GET "/job/$job/explain" # why does it wait?
echo
call GET /constraint/calls/usage
echo

# 0 seconds end the break.
call POST /constraint/calls/hold '{"by": "acme", "seconds": 0}' >/dev/null
call GET "/job/$job/polling?timeout=10" >/dev/null
call GET "/job/$job/result"
echo
call DELETE /constraint/calls

# Many edits, one job: as long as it waits, it gets the argument of the last.
page() { enqueue '{"name": "render", "unique": "page 7", "if_exists": "replace", "keep_result": true, '"$1}"; }
job=$(page '"delay": 60, "argument": {"edit": 1}')
same=$(page '"delay": 0, "argument": {"edit": 2}')
[ "$job" = "$same" ]
call GET "/job/$job/polling?timeout=10" >/dev/null
call GET "/job/$job/result"
echo

# Every morning at half past eight, and when the next two times are.
call POST /schedule/morning '{"cron": "30 8 * * *", "timezone": "Europe/Berlin", "job": {"name": "add"}, "argument": [1, 2]}' >/dev/null
call GET '/schedules?ids=morning&next=2'
echo
call DELETE /schedule/morning

# What failed for good, by group, with the last message of each. Then the record of this one goes.
job=$(enqueue '{"name": "call-partner", "argument": {"partner": "bob", "closed": true}}')
call GET "/job/$job/polling?timeout=10" >/dev/null
call GET /failures
echo
call POST /jobs/discard "{\"ids\": [\"$job\"]}" >/dev/null

# How many jobs there were today, and how long they waited and ran.
call GET '/stats?by=day&name=add'
echo
