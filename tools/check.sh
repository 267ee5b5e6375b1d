#!/bin/sh
# Runs parts of the checks, for `make`: lint (or one of ruff, mypy, format, biome, luacheck), js, lua, python, valkey,
# faults; or quick, which is something of each. Goes on after a failure, and ends with a summary.
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

# Where it is set, each of the hundreds of processes of the tests would compile the package anew.
unset PYTHONDONTWRITEBYTECODE

# Of each room what is quickest: less than a minute in all.
quick_specs=$(printf 'tests/lua/%s_spec.lua ' life/enqueue pick/pick life/finish life/retry limits/lanes links/depend \
    schedules/cron upkeep/audit limits/by)
quick_tests="tests/py/house $(printf 'tests/py/%s.py ' bundle/test_build_refused connection/test_redis_url \
    engine/test_together engine/test_engine engine/test_engine_calls engine/test_ended engine/test_subscriptions \
    engine/test_errors_change_nothing model/test_model_steps)"

# All that runs them would build the scripts otherwise, at the same time.
build_scripts() {
    for clock in server settable; do
        $bin/python -c "from jqmaster.engine.scripts import builtin; builtin('$clock')" &
    done
    wait
}

# The specs take one core: they run beside the Python tests, and are shown behind them.
specs_log=
specs_pid=
case " $* " in
    *" lua python "*)
        build_scripts
        specs_log=$(mktemp "${TMPDIR:-/tmp}/jq-specs.XXXXXX")
        JQ_FORM="functions scripts" tests/lua/run >"$specs_log" 2>&1 &
        specs_pid=$!
        trap 'kill "$specs_pid" 2>/dev/null; rm -f "$specs_log"' EXIT
        trap 'exit 130' INT
        trap 'exit 143' TERM
        ;;
esac

specs() {
    if [ -z "$specs_pid" ]; then
        JQ_FORM="functions scripts" tests/lua/run
    else
        wait "$specs_pid"
        status=$?
        cat "$specs_log"
        return $status
    fi
}

# side_by_side <workers> <argument>... of pytest: files side by side, since much of their time is waiting for processes; in the order
# of conftest.py, and not those of the most tests first, which are not those that take long.
side_by_side() {
    workers=$1
    shift
    $bin/python -m pytest -q -n "$workers" --dist loadfile --no-loadscope-reorder "$@"
}

# Where servers may differ: the specs in both forms, and all that has to do with connections.
other_server() { # other_server <server>
    JQ_REDIS_SERVER=$1 JQ_FORM="functions scripts" tests/lua/run &&
        JQ_REDIS_SERVER=$1 $bin/python -m pytest -q -n 4 --dist loadfile tests/py/connection \
            $(printf 'tests/py/engine/test_%s.py ' forms export subscriptions waiting)
}

for name in $(echo " $* " | sed -e 's/ lint / ruff mypy format biome luacheck /' \
    -e 's/ quick / ruff format biome luacheck js quick-tests /'); do
    case $name in
        ruff) part "ruff" $bin/ruff check python tests bench tools setup.py ;;
        mypy) part "mypy" $bin/mypy ;;
        format) part "ruff format" $bin/ruff format --check --quiet python tests bench tools setup.py ;;
        biome) part "biome" tools/js/node_modules/.bin/biome ci --error-on-warnings --colors=off ;;
        js) part "node --test tests/js" node --test tests/js/test_*.mjs ;;
        luacheck)
            part "luacheck" luacheck --quiet --no-color scripts jqlua python/jqmaster/engine tests/lua examples/lua
            ;;
        quick-tests)
            build_scripts
            part "some specs" tests/lua/run $quick_specs
            part "some Python tests" $bin/python -m pytest -q -n 2 --dist loadfile $quick_tests
            ;;
        lua) [ -n "$specs_pid" ] || part "busted tests/lua" specs ;;
        python)
            [ -n "$specs_pid" ] || build_scripts
            part "pytest tests/py" side_by_side 4 -m "not faults" tests/py
            [ -z "$specs_pid" ] || part "busted tests/lua" specs
            ;;
        faults)
            build_scripts
            part "pytest tests/py -m faults" side_by_side 3 -m faults tests/py
            ;;
        valkey)
            if command -v valkey-server >/dev/null; then
                part "specs and connections with Valkey" other_server valkey-server
            else
                echo "no valkey-server here: not tested with it"
            fi
            ;;
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
