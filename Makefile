# make demo    everything on this machine, at work, in under a minute once it is set up
# make serve   the JQ master, with a Redis of its own under var/   (ARGS="--help")
# make load    the scripts into a Redis: REDIS=redis://… [NAMESPACE={jq}]
# make generate  what is made of heads of scripts and manifest/fields.py: OpenAPI, typed calls, pages, the UI's list
# make test    lint, the JavaScript, Lua and Python tests; with Valkey, too, where it is installed
# make quick   of these what is told within a minute
# make test-faults  the Python tests that `make test` leaves out: kills, cuts and failovers under load
# make model   the reference model against the engine   (ARGS="--steps 3000 --seed 7", "--help")
# make fuzz    right, odd and broken inputs for every script and a master   (ARGS="--seed 7 --seconds 600", "--help")
# make soak    workers restarted one after the other under load   (ARGS="--seconds 1800 --seed 7", "--help")
# make mutants  whether the tests find faults that are put in   (ARGS="jqlua/pick": only there)
# make bench   measurements   (ARGS="--help")
# make dist    dist/: wheel and sdist
# make docs    the pages as a site with search, build/site/html; a broken link fails
# make lock    requirements.lock: what the tests run with, with hashes   (ARGS="--upgrade")
# make lowest  some tests with the lowest versions that pyproject.toml allows

PYTHON ?= python3
VENV := .venv
DIST := build/dist
RELEASE := build/release
BIOME := tools/js/node_modules/.bin/biome
PY := $(VENV)/bin/python
PIP_OPTIONS := --quiet --disable-pip-version-check
NAMESPACE ?= {jq}
export PYTHON

.PHONY: demo serve load test test-faults quick mutants lint bench dist setup setup-run packages-run packages-test
.DEFAULT_GOAL := help

.PHONY: help
help:
	@sed -n 's/^# make /make /p' Makefile

# npm needs a core for some seconds, and so does pip.
setup: packages-test
	@$(MAKE) --no-print-directory -j2 $(VENV)/.installed $(BIOME)

setup-run: packages-run $(VENV)/.installed-run

packages-run:
	@sh tools/packages.sh run

packages-test:
	@sh tools/packages.sh test

# What runs, without what tests it.
$(VENV)/.installed-run: pyproject.toml setup.py | packages-run
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'JQ needs Python 3.11 or newer')"
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install $(PIP_OPTIONS) -e '.[server]'
	@touch $@

$(VENV)/.installed: $(VENV)/.installed-run
	$(PY) -m pip install $(PIP_OPTIONS) -e '.[server,dev]'
	@touch $@

demo: setup-run
	$(PY) examples/demo.py

serve: setup-run
	$(VENV)/bin/jqmaster serve $(ARGS)

load: setup-run
	@test -n '$(REDIS)' || { echo "usage: make load REDIS=redis://host:port [NAMESPACE='{jq}']"; exit 2; }
	$(VENV)/bin/jqmaster load --redis '$(REDIS)' --namespace '$(NAMESPACE)'

bench: setup
	$(PY) bench/run.py $(ARGS)

dist: $(DIST)/.installed
	$(DIST)/bin/python -m build --no-isolation --outdir dist .
	$(DIST)/bin/twine check --strict dist/*.whl dist/*.tar.gz

.PHONY: docs
docs: setup-run $(RELEASE)/.installed
	$(PY) tools/site.py $(RELEASE)/bin/zensical

# What only releases need: $(DIST) for `make dist`, $(RELEASE) for the pages, the lock and the lowest versions.
$(DIST)/.installed $(RELEASE)/.installed: build/%/.installed: pyproject.toml | packages-run
	$(PYTHON) -m venv build/$*
	build/$*/bin/pip install $(PIP_OPTIONS) $$($(PYTHON) -c \
		"import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['dependency-groups']['$*'])")
	@touch $@

# Versions that are in the file stay unless told otherwise.
.PHONY: lock lowest
lock: $(RELEASE)/.installed
	$(RELEASE)/bin/pip-compile --quiet --generate-hashes --extra server --extra dev --extra otel \
		--strip-extras --allow-unsafe --no-emit-index-url --no-emit-find-links --no-annotate --no-header \
		--output-file requirements.lock $(ARGS) pyproject.toml
	sed -i '/^# WARNING: pip install will/,/^jqmaster @/d' requirements.lock  # extras that name others name the package

# Something of all that the dependencies are used for.
LOWEST := engine/test_engine engine/test_ended connection/test_redis_options server/test_http_jobs \
	server/test_http_server server/test_metrics client/test_app_async worker/test_worker worker/test_tracing
lowest: export VIRTUAL_ENV := build/lowest
lowest: $(RELEASE)/.installed
	$(RELEASE)/bin/uv venv --quiet --clear build/lowest
	$(RELEASE)/bin/uv pip install --quiet --resolution lowest-direct -e '.[cli,worker,server,otel]' 'opentelemetry-sdk>=1.20'
	$(RELEASE)/bin/uv pip install --quiet hypothesis jsonschema-rs pytest pytest-asyncio pytest-timeout pyyaml requests
	build/lowest/bin/python -m pytest -q -p no:cacheprovider $(LOWEST:%=tests/py/%.py)

# The tests say when it was forgotten.
.PHONY: generate
generate: setup
	@$(PY) tools/fields.py
	@$(PY) tools/operations.py

# JavaScript's linter and formatter; nothing that runs needs it.
$(BIOME): tools/js/package.json | packages-test
	npm install --prefix tools/js --no-audit --no-fund --no-package-lock --loglevel error
	@touch $@

# The web UI's libraries, from the versions in tools/js/package.json.
.PHONY: vendor
vendor: $(BIOME)
	node tools/js/vendor.mjs

LINT := ruff format mypy biome luacheck
SOURCES := python tests bench tools setup.py
PYTEST := $(PY) -m pytest -q --dist loadfile
# Otherwise each of the hundreds of processes of the tests compiles the package anew.
unexport PYTHONDONTWRITEBYTECODE
# Every part runs even when one before it failed; the last line says which did.
parts = @failed=; for part in $(1); do $(MAKE) --no-print-directory $$part || failed="$$failed $$part"; done; \
	if [ -n "$$failed" ]; then echo "FAILED:$$failed"; exit 1; else echo "All passed."; fi

lint: setup
	$(call parts,$(LINT))

test: setup
	$(call parts,$(LINT) js tests valkey)

test-faults: setup built
	$(PYTEST) -n 3 --no-loadscope-reorder -m faults tests/py

quick: setup
	$(call parts,ruff format biome luacheck js quick-tests)

.PHONY: $(LINT) js built tests specs python valkey quick-tests
ruff:
	$(VENV)/bin/ruff check $(SOURCES)
format:
	$(VENV)/bin/ruff format --check --quiet $(SOURCES)
mypy:
	$(VENV)/bin/mypy
biome:
	$(BIOME) ci --error-on-warnings --colors=off
luacheck:
	luacheck --quiet --no-color scripts jqlua python/jqmaster/engine tests/lua examples/lua
js:
	node --test tests/js/test_*.mjs

# All that runs them would build the scripts otherwise, at the same time.
built:
	@$(PY) -c "from jqmaster.engine.scripts import builtin; builtin(), builtin('settable')"

# The specs take one core: they run beside the Python tests, and are shown if they fail.
tests: built
	@$(MAKE) --no-print-directory --jobs=2 --keep-going specs python
specs:
	@JQ_FORM="functions scripts" tests/lua/run >build/specs.log 2>&1 || { cat build/specs.log; exit 1; }
# Files in the order of conftest.py: those with the most tests are not those that take long.
python:
	$(PYTEST) -n 4 --no-loadscope-reorder -m "not faults" tests/py

# Where servers may differ: the specs in both forms, and all that has to do with connections.
valkey: export JQ_REDIS_SERVER := valkey-server
valkey: built
	@command -v valkey-server >/dev/null || echo "no valkey-server here: not tested with it"
	@! command -v valkey-server >/dev/null || JQ_FORM="functions scripts" tests/lua/run
	@! command -v valkey-server >/dev/null || $(PYTEST) -n 4 tests/py/connection \
		$(patsubst %,tests/py/engine/test_%.py,forms export waiting)

# Of each room what is quickest: less than a minute in all.
quick-tests: built
	tests/lua/run $(patsubst %,tests/lua/%_spec.lua,life/enqueue pick/pick life/finish life/retry limits/lanes \
		links/dependencies schedules/cron upkeep/audit limits/by)
	$(PYTEST) -n 2 -k "not passes_the_checks" tests/py/house $(patsubst %,tests/py/%.py,bundle/test_build_refused connection/test_redis_url \
		connection/test_together engine/test_engine engine/test_engine_calls engine/test_ended connection/test_subscriptions \
		engine/test_errors_change_nothing model/test_model_steps)

.PHONY: model fuzz soak
model: setup
	@PYTHONPATH=tests/py/support:tools $(PY) tests/py/model/test_model.py $(ARGS)

fuzz: setup
	$(PY) tools/fuzz.py $(ARGS)

soak: setup
	$(PY) tests/py/support/rolling.py $(ARGS)

records: setup
	PYTHONPATH=tests/py/support:tests/py/model:tools $(PY) tests/py/bundle/test_common.py

mutants: setup
	$(PY) tools/mutants.py $(ARGS)
