#!/bin/sh
# Enqueue a job and wait for its result with nothing but curl, in JSON. Needs a worker with `tasks:FUNCTIONS`.
# sh curl.sh [URL of the master]
set -eu
JQ=${1:-http://127.0.0.1:8400}

job=$(curl -sS --fail-with-body "$JQ/job" -H 'content-type: application/json' \
  -d '{"name": "add", "argument": [40, 2], "keep_result": true}' | sed 's/.*"job_id" *: *"\([^"]*\)".*/\1/')
curl -sS --fail-with-body -o /dev/null "$JQ/job/$job/polling?timeout=10" -H 'accept: application/json'
curl -sS --fail-with-body "$JQ/job/$job/result" -H 'accept: application/json'
echo
