# Functions that speak JQ with redis-cli and printf alone, written from docs/protocol.md. For small specs: texts of up to
# 255 bytes without quotes and backslashes, integers from -32 to 65535.
#
#   JQ_REDIS="redis-cli -h 127.0.0.1"; . ./jq.sh
#   call enqueue "$(map name "$(text greet)")" "$(text world)"
#
# redis-cli reads commands from its input with "\xHH" for any byte, and writes replies with --no-raw in the same way. So
# MessagePack is plain text here: `map a "$(integer 1)"` is \x81\xa1a\x01.
LC_ALL=C
export LC_ALL
[ -n "${JQ_REDIS-}" ] || JQ_REDIS=redis-cli
[ -n "${JQ_NAMESPACE-}" ] || JQ_NAMESPACE='{jq}'

# -- MessagePack -------------------------------------------------------------------------------------------

byte() { printf '\\x%02x' "$1"; }

text() {
    if [ ${#1} -lt 32 ]; then byte $((160 + ${#1})); else byte 217 && byte ${#1}; fi
    printf %s "$1"
}

integer() {
    if [ "$1" -lt 0 ]; then byte $((256 + $1))
    elif [ "$1" -lt 128 ]; then byte "$1"
    else byte 205 && byte $(($1 / 256)) && byte $(($1 % 256)); fi
}

boolean() { if [ "$1" = true ]; then byte 195; else byte 194; fi; }
nil() { byte 192; }

list() { # list value...
    byte $((144 + $#))
    printf %s "$@"
}

map() { # map name value...
    byte $((128 + $# / 2))
    while [ $# -gt 0 ]; do
        text "$1" && printf %s "$2"
        shift 2
    done
}

# In what comes in, an integer or a text may have any of its encodings. One byte of it, as redis-cli shows it:
JQ_BYTE='(\\x[0-9a-f]{2}|\\[abtnr"\\]|[^\\])'

key() { text "$1" | sed 's/\\/\\\\/'; }

# The text (of up to 255 bytes) that a field of a document has; the document comes in.
text_field() { sed -nE "s/.*$(key "$1")(\\\\x[ab][0-9a-f]|\\\\xd9$JQ_BYTE)([^\\\\\"]*).*/\3/p"; }

# The integer from 0 to 127 that a field of a document has.
integer_field() {
    shown=$(sed -nE "s/.*$(key "$1")(\\\\xcc|\\\\xcd\\\\x00|\\\\x(ce|d2)(\\\\x00){3})?$JQ_BYTE.*/\4/p")
    case $shown in
        '') ;;
        '\a') echo 7 ;;
        '\b') echo 8 ;;
        '\t') echo 9 ;;
        '\n') echo 10 ;;
        '\r') echo 13 ;;
        '\x'*) printf '%d\n' "0${shown#?}" ;;
        *) printf '%d\n' "'${shown#\\}" ;;
    esac
}

# -- Calling a script --------------------------------------------------------------------------------------

redis() { $JQ_REDIS "$@"; }

manifest() { redis --raw HGET "$JQ_NAMESPACE:manifest" "$1"; }

evaluate() { # evaluate sha argument...
    line="EVALSHA $1 2 \"$JQ_NAMESPACE\" \"$JQ_NAMESPACE:meta\""
    shift
    for argument in "$@"; do line="$line \"$argument\""; done
    printf '%s\n' "$line" | redis --no-raw
}

# call script argument...: prints the reply; an error reply goes to standard error, and ends with status 1. Where the
# connection breaks, nobody knows whether the call was carried out: it is sent again, which tokens make safe.
call() {
    script=$1
    shift
    tries=0
    while :; do
        reply=
        if sha=$(manifest "$script"); then
            [ -n "$sha" ] || { echo "no script $script in $JQ_NAMESPACE:manifest" >&2 && return 1; }
            reply=$(evaluate "$sha" "$@") || reply=
        fi
        case $reply in
            '' | '(error) LOADING'*) ;;
            '(error) NOSCRIPT'*)
                # Not called before, or gone with SCRIPT FLUSH, a restart, a failover. -D '': no line end behind what comes.
                redis --raw -D '' HGET "$(manifest sources)" "$sha" | gzip -dc | redis -x SCRIPT LOAD >/dev/null
                ;;
            '(error) '*) printf '%s\n' "${reply#(error) }" >&2 && return 1 ;;
            *) printf '%s\n' "$reply" && return ;;
        esac
        tries=$((tries + 1))
        [ $tries -lt 100 ] || { echo "no answer to $script" >&2 && return 1; }
        sleep 0.1
    done
}

# -- A worker ----------------------------------------------------------------------------------------------

random() { od -An -N8 -tx1 /dev/urandom | tr -d ' \n'; }

JQ_WORKER=shell-$(random) # unique, or others would answer for it
JQ_STOP=                  # set by SIGTERM while `work` runs

# Waits for a job of a queue and sets $id, $token, $attempt, $name and $argument (MessagePack, as above).
next_job() { # next_job queue
    channel=q-$(printf %s "$1" | sha1sum | cut -c1-16)
    while :; do
        picked=$(call pick "$(map worker "$(text "$JQ_WORKER")" queues "$(text "$1")" request "$(text "$(random)")" \
            wait "$(map on "$(text "$channel")" ms "$(integer 30000)")")") || return 1
        next_ms=$(printf '%s\n' "$picked" | sed -n 's/^1) (integer) //p')
        document=$(printf '%s\n' "$picked" | sed -n 's/^2) "\(.*\)"$/\1/p')
        if [ -n "$document" ]; then
            id=$(printf '%s\n' "$document" | text_field id)
            token=$(printf '%s\n' "$document" | text_field token)
            name=$(printf '%s\n' "$document" | text_field name)
            attempt=$(printf '%s\n' "$document" | integer_field attempt)
            argument=$(printf '%s\n' "$picked" | sed -n 's/^3) "\(.*\)"$/\1/p')
            return 0
        fi
        # In the background, since a signal interrupts only `wait`. However it ends, the next thing is to pick again.
        redis BZPOPMIN "$JQ_NAMESPACE:wake:$channel" "$((next_ms / 1000)).$(printf %03d $((next_ms % 1000)))" \
            >/dev/null 2>&1 &
        wait $! || true
        [ -z "$JQ_STOP" ] || { kill $! 2>/dev/null || true; return 1; }
    done
}

# Sends a finish, and prints the job's state.
finish() { # finish blob field value...
    blob=$1
    shift
    call finish "$(map worker "$(text "$JQ_WORKER")")" \
        "$(map id "$(text "$id")" token "$(text "$token")" "$@")" "$blob" | sed 's/.*"\(.*\)"/\1/'
}
succeed() { finish "$1" type "$(text success)"; }                       # succeed result
fail() { finish "$(nil)" type "$(text failure)" message "$1"; }         # fail message
held() { list "$(list "$(text "$id")" "$(text "$token")" "$@")"; }
release() { call release "$(map worker "$(text "$JQ_WORKER")" jobs "$(held)")"; }

# Renews the lease: prints an integer, or LOST or CANCELLED when the job is ours no longer.
beat() { call heartbeat "$(map worker "$(text "$JQ_WORKER")" jobs "$(held "$@")")"; }

# Says how far the job is, and renews its lease.
progress() { # progress number message
    beat "$(map progress "$(integer "$1")" message "$(text "$2")")" >/dev/null
}

# Works until SIGTERM: each job is a call of the function `job_<name>`, which prints the result, or a message and
# ends with another status than 0; both as MessagePack.
work() { # work queue
    trap 'JQ_STOP=1' TERM
    printed=$(mktemp)
    while next_job "$1"; do
        [ -z "$JQ_STOP" ] || { release >/dev/null; break; }
        ("job_$name") >"$printed" 2>/dev/null &
        job=$!
        # The shell of the job is ended when the job is ours no longer.
        (while sleep 0.3 && kill -0 $job; do case $(beat) in *LOST* | *CANCELLED*) kill $job && break ;; esac; done) 2>/dev/null &
        beats=$!
        status=
        while [ -z "$status" ] || kill -0 $job 2>/dev/null; do # a signal ends `wait` early
            status=0
            wait $job || status=$?
        done
        kill $beats 2>/dev/null || true
        case $status in
            0) succeed "$(cat "$printed")" ;;
            127) fail "$(text "no function job_$name")" ;;
            143) ;; # ended: not ours
            *) fail "$(cat "$printed")" ;;
        esac >/dev/null
    done
    rm "$printed"
}
