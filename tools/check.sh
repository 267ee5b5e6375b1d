#!/bin/sh
# Runs parts of the checks, for `make`: lint, lua, python. Goes on after a failure, and ends with a summary.
set -u
cd "$(dirname "$0")/.."
bin=.venv/bin
failed=

part() { # part <title> <command>...
    title=$1
    shift
    printf '\n==> %s\n' "$title"
    begun=$(date +%s)
    if "$@"; then
        printf -- '--- %s: passed in %s s\n' "$title" "$(($(date +%s) - begun))"
    else
        printf -- '--- %s: FAILED after %s s\n' "$title" "$(($(date +%s) - begun))"
        failed="$failed$title; "
    fi
}

for name in "$@"; do
    case $name in
        lint)
            part "ruff" $bin/ruff check python tests bench tools setup.py
            part "mypy" $bin/mypy
            part "luacheck" luacheck --quiet --no-color scripts jqlua tests/lua
            ;;
        lua) part "busted tests/lua" tests/lua/run ;;
        python) part "pytest tests/py" $bin/python -m pytest -q tests/py ;;
        *)
            echo "unknown part: $name" >&2
            exit 2
            ;;
    esac
done

if [ -n "$failed" ]; then
    printf '\nFAILED: %s\n' "${failed%; }"
    exit 1
fi
printf '\nAll passed.\n'
