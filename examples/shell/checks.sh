#!/bin/sh
# What tests/protocol/worker.py asks of a worker: python tests/protocol/worker.py --slots 1 sh examples/shell/checks.sh
set -eu
JQ_REDIS="redis-cli -s $JQ_SOCKET"
. "$(dirname "$0")/jq.sh"

job_echo() { printf %s "${argument#*value}"; } # what stands behind the name of the only field
job_nap() {
    seconds=$(printf '%s' "$argument" | integer_field seconds)
    while [ "$seconds" -gt 0 ]; do
        sleep 1
        seconds=$((seconds - 1))
    done
    nil
}
job_fail() { printf %s "${argument#*text}" && return 1; }
job_garble() { printf '\\xa2\\xff\\xfe' && return 1; }

work checks
