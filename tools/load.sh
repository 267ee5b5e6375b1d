#!/bin/sh
# Puts these scripts, and their library of functions where the server has functions, into a Redis with nothing
# but redis-cli and gzip, and makes them the namespace's current version.
#
#   sh load.sh [redis-cli options] [-- namespace]
#   sh load.sh -h redis.example.org -p 6380 -- '{jq}'
#
# Safe to repeat. The namespace is {jq} unless given; JQ_KEEP=3 keeps three versions. See docs/design.md.
set -eu
export LC_ALL=C

VERSION=@VERSION@
SCRIPTS="@SCRIPTS@" # name:sha:flags
LIBRARY=@LIBRARY@
FUNCTIONS="@FUNCTIONS@"
OPERATIONS=@OPERATIONS@

here=$(cd "$(dirname "$0")" && pwd)
namespace={jq}

# What stands before -- stays in "$@", for redis-cli.
left=$#
while [ "$left" -gt 0 ]; do
    if [ "$1" = -- ]; then
        shift
        left=$((left - 1))
        [ "$left" -le 1 ] || { echo "expected one namespace after --" >&2; exit 2; }
        if [ "$left" -eq 1 ]; then
            namespace=$1
            shift
        fi
        break
    fi
    set -- "$@" "$1"
    shift
    left=$((left - 1))
done

fail() {
    echo "not loaded: $*" >&2
    exit 1
}

# -e: an error reply ends redis-cli with an error. Options of the caller come first.
cli() {
    redis-cli $options -e "$@"
}

options=
for option in "$@"; do
    case $option in
        *[\ \	\'\"\\*?]*) fail "redis-cli options must not hold blanks, quotes or patterns: $option (a password can stand in REDISCLI_AUTH)" ;;
    esac
    options="$options $option"
done

inside=${namespace#?}
inside=${inside%?}
[ "$namespace" = "{$inside}" ] && [ ${#inside} -ge 1 ] && [ ${#inside} -le 64 ] ||
    fail "namespace $namespace: expected 1 to 64 characters in braces, such as {jq}"
case $inside in
    *[!!-z\|~]*) fail "namespace $namespace: expected printable ASCII characters without blanks and braces" ;;
esac

info=$(cli INFO) || fail "$info"
major=$(echo "$info" | sed -n 's/^redis_version:\([0-9]*\).*/\1/p')
policy=$(echo "$info" | tr -d '\r' | sed -n 's/^maxmemory_policy://p')
[ "${major:-7}" -ge 7 ] || fail "this is Redis $major: JQ needs Redis 7.0 or newer"
[ "${policy:-noeviction}" = noeviction ] ||
    fail "maxmemory-policy is $policy: Redis would drop jobs when memory is short; set it to noeviction"

entries=
for entry in $SCRIPTS; do
    name=${entry%%:*}
    rest=${entry#*:}
    got=$(cli -x EVAL 'return redis.sha1hex(ARGV[1])' 0 <"$here/$name.lua") || fail "$got"
    [ "$got" = "${rest%%:*}" ] || fail "$name.lua has sha $got, expected ${rest%%:*}: the file was changed"
    entries="$entries $name ${rest%%:*} ${rest#*:}"
done

got=$(cli EVAL "$(cat "$here/setup.lua")" 2 "$namespace" "$namespace:meta") || fail "$got"
got=$(cli -x FUNCTION LOAD REPLACE <"$here/library.lua" 2>&1) || case $got in
    *"unknown command"*)
        LIBRARY= FUNCTIONS=
        echo "without the library: this Redis has no functions" >&2
        ;;
    *"permissions to run"*)
        LIBRARY= FUNCTIONS=
        echo "without the library: this user may not load functions" >&2
        ;;
    *) fail "$got" ;;
esac

# Sources are shared by all namespaces, but in a cluster, or where this user may not.
sources=$namespace:scripts
case $info in
    *redis_mode:standalone*)
        got=$(cli EXISTS jq:scripts 2>&1) && sources=jq:scripts
        ;;
esac

note() {
    cli --raw EVAL "$(cat "$here/manifest.lua")" 2 "$namespace:manifest" "$sources" \
        "$namespace" "$VERSION" 1 "${JQ_KEEP-}" "$LIBRARY" "$FUNCTIONS" "$OPERATIONS" $entries
}

# It says 0 and which sources are lacking, until none is.
until
    said=$(note) || fail "$said"
    [ "${said%%[!0-9]*}" = 1 ]
do
    for lacking in $said; do
        [ "$lacking" = 0 ] && continue
        file=library.lua
        [ "$lacking" = "$OPERATIONS" ] && file=operations.json
        for entry in $SCRIPTS; do
            case $entry in *:"$lacking":*) file=${entry%%:*}.lua ;; esac
        done
        got=$(gzip -9n <"$here/$file" | cli -x HSET "$sources" "$lacking") || fail "$got"
    done
done

# Libraries that nobody keeps.
for name in $said; do
    [ "$name" = 1 ] && continue
    got=$(cli FUNCTION DELETE "$name" 2>&1) || case $got in *"not found"* | *"permissions to run"*) ;; *) fail "$got" ;; esac
done
echo "$namespace: version $VERSION of the scripts is loaded and current"
