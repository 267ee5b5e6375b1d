#!/bin/sh
# Sees to the system packages, for `make`. With "run": what running JQ needs; with "test": also what its tests need.
# Installs what is missing when this is Debian and root, otherwise says what to install. What tests only make use of
# where it is there is installed where it can be.
set -eu

missing=
need() { # need <package> <command that succeeds when it is there>
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}
wanted=
want() { # want <package> <its command>
    if ! command -v "$2" >/dev/null && [ "$(id -u)" -eq 0 ] &&
        apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [0-9]'; then
        wanted="$wanted $1"
    fi
}
lua_module() { lua5.1 -e "require '$1'"; }

need redis-server command -v redis-server
need redis-tools command -v redis-cli
need python3-venv "${PYTHON:-python3}" -c "import ensurepip, venv"
if [ "${1:-run}" = test ]; then
    need lua5.1 command -v lua5.1
    need lua-check command -v luacheck
    need lua-busted command -v busted
    need lua-socket lua_module socket
    need lua-dkjson lua_module dkjson
    need lua-redis lua_module redis
    need lua-messagepack lua_module MessagePack
    need nodejs command -v node
    need npm command -v npm
    need chromium command -v chromium
    want chromium-headless-shell chromium-headless-shell
    want valkey-server valkey-server
    want nginx-light nginx
    want caddy caddy
    want prometheus promtool
    want strace strace
fi
[ -n "$missing$wanted" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "Please install what these Debian packages hold:$missing" >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "Please run: sudo apt-get install -y$missing" >&2
    exit 1
fi

# Debian starts a server on the default port when the package comes in; we run our own on a socket.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# shellcheck disable=SC2086
[ -z "$missing" ] || apt-get install -y -q --no-install-recommends $missing
# shellcheck disable=SC2086
[ -z "$wanted" ] || apt-get install -y -q --no-install-recommends $wanted || echo "Going on without$wanted." >&2
for server in redis-server valkey-server nginx caddy prometheus; do
    case $missing$wanted in
        *$server*) ! command -v systemctl >/dev/null || systemctl disable $server >/dev/null 2>&1 || true ;;
    esac
done
