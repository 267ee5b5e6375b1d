#!/bin/sh
# Enqueues, works, reports progress, fails and retries, and does not mind SCRIPT FLUSH; with nothing but redis-cli.
# sh example.sh [options of redis-cli]       JQ_NAMESPACE='{jq}'
set -eu
JQ_REDIS="redis-cli $*"
. "$(dirname "$0")/jq.sh"

enqueue() { # enqueue name argument: prints the id
    call enqueue "$(map name "$(text "$1")" queue "$(text shell)" keep_result "$(boolean true)" \
        retry_base "$(integer 0)")" "$2" | sed -n 's/^1) "\(.*\)"$/\1/p'
}

greeting=$(enqueue greet "$(text ada)")
redis SCRIPT FLUSH >/dev/null # as a restart or a failover would
print=$(enqueue print "$(integer 3)")

left="$greeting $print"
while [ -n "${left% }" ]; do
    next_job shell
    case $name in
        greet) state=$(succeed "$(text "hello, ${argument#????}")") ;; # behind the length
        print)
            progress 50 "half of it"
            if [ "$attempt" -eq 1 ]; then
                state=$(fail "$(text "out of paper")")
            else
                state=$(succeed "$(text printed)")
            fi
            ;;
        *) state=$(fail "$(text "no such job")") ;;
    esac
    echo "$name, attempt $attempt: $state"
    [ "$state" = retrying ] || left=$(echo "$left" | sed "s/$id//; s/^ //")
done

echo "greet: $(call result "$greeting" | sed -n 's/^2) "....\(.*\)"$/\1/p')"
document=$(call get "$print")
shown() { printf '%s\n' "$document" | "$@"; }
echo "print: $(shown text_field status), $(shown integer_field progress)%, $(shown text_field progress_message)," \
    "failed before: $(shown text_field message)"
call result 00000000000000 || echo "and this is what an error is like"
