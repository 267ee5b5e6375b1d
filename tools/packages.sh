#!/bin/sh
# Sees to the system packages, for `make`. With "run": what running JQ needs; with "test": also what its tests need.
# Installs what is missing when this is Debian and root, otherwise says what to install.
set -eu

missing=
need() { # need <package> <command that succeeds when it is there>
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}

need redis-server command -v redis-server
need redis-tools command -v redis-cli
need python3-venv "${PYTHON:-python3}" -c "import ensurepip, venv"
if [ "${1:-run}" = test ]; then
    need lua5.1 command -v lua5.1
    need lua-check command -v luacheck
    need lua-busted command -v busted
    for module in socket dkjson redis; do need "lua-$module" lua5.1 -e "require '$module'"; done
    need lua-messagepack lua5.1 -e "require 'MessagePack'"
    need nodejs command -v node
    need npm command -v npm
    need chromium command -v chromium
    # Tests make use of these where they are there, and Debian 12 has no valkey-server.
    [ "$(id -u)" -ne 0 ] || for package in chromium-headless-shell valkey-server nginx-light caddy prometheus strace; do
        dpkg -s "$package" >/dev/null 2>&1 || ! apt-cache show "$package" >/dev/null 2>&1 || missing="$missing $package"
    done
fi
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "Please install what these Debian packages hold:$missing" >&2
    exit 1
fi
# Debian starts servers on their default ports when packages come in; ours run on sockets.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
fi
apt-get update -q
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
! command -v systemctl >/dev/null || systemctl disable redis-server valkey-server nginx caddy prometheus >/dev/null 2>&1 || true
