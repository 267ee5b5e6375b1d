#!/bin/sh
# Loads these scripts, and their library of functions where the server has functions, into a Redis with nothing
# but redis-cli, and makes them the namespace's current version.
#
#   sh load.sh [redis-cli options] [-- namespace]
#   sh load.sh -h redis.example.org -p 6380 -- '{jq}'
#
# Safe to repeat. The namespace is {jq} unless given. See docs/protocol.md, section 10.
set -eu
export LC_ALL=C

VERSION=@VERSION@
SCRIPTS="@SCRIPTS@" # name:sha:flags
LIBRARY=@LIBRARY@
FUNCTIONS="@FUNCTIONS@"

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

meta=$namespace:meta
manifest=$namespace:manifest
current="version $VERSION"
beside=
for entry in $SCRIPTS; do
    name=${entry%%:*}
    rest=${entry#*:}
    sha=${rest%%:*}
    got=$(cli -x SCRIPT LOAD <"$here/$name.lua") || fail "$got"
    [ "$got" = "$sha" ] || fail "$name.lua has sha $got, expected $sha: the file was changed"
    current="$current $name $sha"
    beside="$beside $VERSION/$name $sha flags:$sha ${rest#*:}"
    [ "$name" != setup ] || setup=$sha
done

got=$(cli EVALSHA "$setup" 2 "$namespace" "$meta") || fail "$got"
got=$(cli -x FUNCTION LOAD REPLACE <"$here/library.lua" 2>&1) || case $got in
    *"unknown command"*)
        LIBRARY=
        echo "without the library: this Redis has no functions" >&2
        ;;
    *"permissions to run"*)
        LIBRARY=
        echo "without the library: this user may not load functions" >&2
        ;;
    *) fail "$got" ;;
esac
for entry in $SCRIPTS; do
    rest=${entry#*:}
    got=$(cli -x HSET "$manifest" "source:${rest%%:*}" <"$here/${entry%%:*}.lua") || fail "$got"
done
before=$(cli --raw HGET "$manifest" version) || fail "$before"
got=$(cli HSET "$manifest" $beside) || fail "$got"
got=$(cli HSET "$manifest" $current) || fail "$got"
if [ -n "$LIBRARY" ]; then
    got=$(cli -x HSET "$manifest" "source:$LIBRARY" <"$here/library.lua") || fail "$got"
    got=$(cli HSET "$manifest" "$VERSION/library" "$LIBRARY" "$VERSION/functions" "$FUNCTIONS" \
        library "$LIBRARY" functions "$FUNCTIONS") || fail "$got"
    current="$current library $LIBRARY functions -"
fi

# What this version no longer has must not be found under its bare name.
present=$(cli --raw HKEYS "$manifest") || fail "$present"
for field in $present; do
    case " $current " in
        *" $field "*) continue ;;
    esac
    case $field in
        *[/:]*) ;;
        *) got=$(cli HDEL "$manifest" "$field") || fail "$got" ;;
    esac
done

# Libraries go that are neither this version's nor that of the one before.
if [ -n "$LIBRARY" ] && [ "${before:-$VERSION}" != "$VERSION" ]; then
    kept=$(cli --raw HGET "$manifest" "$before/library") || fail "$kept"
    for field in $present; do
        case $field in */library) ;; *) continue ;; esac
        name=$(cli --raw HGET "$manifest" "$field") || fail "$name"
        [ "$name" != "$LIBRARY" ] && [ "$name" != "$kept" ] || continue
        got=$(cli FUNCTION DELETE "$name" 2>&1) || case $got in *"not found"*) ;; *) fail "$got" ;; esac
        got=$(cli HDEL "$manifest" "$field" "${field%/library}/functions" "source:$name") || fail "$got"
    done
fi
echo "$namespace: version $VERSION of the scripts is loaded and current"
