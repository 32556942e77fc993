# Everything sets itself up: a machine with Python 3.11+ and make is enough.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PACKAGE_PIP := .venv/package/bin/python -m pip install --quiet --disable-pip-version-check
INSTALL_SELF := $(PIP) --no-deps --no-build-isolation --editable .

.PHONY: help setup dev demo page test lint docs package audit soak crash engines again browser fuzz bench peers trust lock clean

help:  ## Show the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

setup: .venv/.core  ## Make .venv and install Tacit with the locked versions of what it needs

.venv/.core: requirements/core.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Tacit needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(PIP) --require-hashes -r requirements/core.lock
	$(INSTALL_SELF)
	@touch $@

dev: .venv/.dev
.venv/.dev: requirements/dev.lock .venv/.core
	$(PIP) --require-hashes -r requirements/dev.lock
	@touch $@

demo: setup  ## Private answers about a real table, in one command
	@$(BIN)/tacit demo

page: setup .venv/.serve  ## The same in the browser, until Ctrl+C
	@$(BIN)/tacit demo --serve

.venv/.serve: requirements/serve.lock .venv/.core
	$(PIP) --require-hashes -r requirements/serve.lock
	@touch $@

# Two workers share the cores: threads of each one's linear algebra would only wait for one another. The programs that
# tests start find Tacit compiled, whatever the environment says about that. A worker takes whole files, and then what the
# other one has left, so that what the tests of a file share is made once. The pages are tried in Chromium where it and its
# driver are on the path; elsewhere those tests are skipped, and say why.
#
# A ledger is synced to the disk at every charge, which is most of what a test waits for: where there is a roomy file system
# in memory, the tests' files are kept there. `make crash` stays on the disk.
MEMORY := $(shell df -k /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4000000 && $$6 == "/dev/shm" {print $$6}')
test audit: export TMPDIR := $(or $(MEMORY),$(TMPDIR),/tmp)
CHROMIUM := $(shell command -v chromium >/dev/null && command -v chromedriver >/dev/null && echo .venv/.browser)
test: export OPENBLAS_NUM_THREADS := 1
test: export PYTHONDONTWRITEBYTECODE :=
test: dev lint $(CHROMIUM)  ## Everything that must hold before a change lands (under 10 minutes)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not audit and not crash and not spark"

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# in an environment of its own and from another folder, so that nothing of this checkout is found by accident
package: dev  ## Build wheel and sdist, install both in clean environments, and run the demonstration there
	rm -rf dist .venv/package
	$(BIN)/python -m hatchling build
	$(PYTHON) -m venv .venv/package
	$(PACKAGE_PIP) --require-hashes -r requirements/core.lock
	$(PACKAGE_PIP) --no-deps dist/*.whl
	cd dist && ../.venv/package/bin/tacit demo
	$(PACKAGE_PIP) --no-deps --no-build-isolation --force-reinstall dist/*.tar.gz
	cd dist && ../.venv/package/bin/tacit demo --json >/dev/null

docs: .venv/.docs  ## The documentation as a site with search, in build/site
	.venv/docs/bin/mkdocs build --quiet --strict
	@echo "build/site/index.html"

.venv/.docs: requirements/docs.lock .venv/.core
	$(PYTHON) -m venv .venv/docs
	.venv/docs/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.lock
	@touch $@

trust: dev  ## What privacy rests on, in files and lines
	$(BIN)/python -m benchmarks.trust

# What an earlier audit found is no part of this one's report; an hour of soak is. The page that says what came of it is
# part of the documentation, so a change of it is committed with what was audited.
SIZE ?= 1
audit: COMMIT := $(shell git describe --always --dirty --exclude '*' 2>/dev/null || echo unknown)
audit: PAGE := docs/log/audit.html
audit: dev  ## Slow statistics, attacks and planted bugs, and their report; SIZE=0.1 makes a tenth of each attack
	mkdir -p build/audit && find build/audit -mindepth 1 -maxdepth 1 ! -name 'soak*' -exec rm -r {} +
	$(BIN)/python -m pytest -n 2 -m audit --size $(SIZE) --junitxml build/audit/tests.xml; failed=$$?; \
	PYTHONPATH=.:tests $(BIN)/python tests/audit_report.py --commit $(COMMIT) --size $(SIZE) \
		--tests build/audit/tests.xml --publish $(PAGE); exit $$failed

MINUTES ?= 60
soak: dev  ## A server for an hour at mixed load, and a picture of what it holds; MINUTES=10 makes ten minutes
	PYTHONPATH=.:tests $(BIN)/python tests/serve/soak.py --minutes $(MINUTES); \
	failed=$$?; PYTHONPATH=.:tests $(BIN)/python tests/audit_report.py; exit $$failed

crash: dev  ## kill -9 and simulated power cuts against the ledger
	$(BIN)/python -m pytest -m crash -s

engines: dev .venv/.engines  ## The same cells from DuckDB, PostgreSQL and Spark (needs a PostgreSQL server and Java 17)
	TACIT_REQUIRE_ENGINES=1 $(BIN)/python -m pytest -m "spark or postgres" tests/engines

SUITE ?= test
TIMES ?= 10
again: dev  ## A suite ten times in a row, each in a fresh clone of HEAD; SUITE=audit|crash|engines TIMES=3
	$(BIN)/python -m benchmarks.again --suite $(SUITE) --times $(TIMES) $(if $(filter audit,$(SUITE)),--size $(SIZE))

.venv/.engines: requirements/engines.lock .venv/.dev
	$(PIP) --require-hashes -r requirements/engines.lock
	@touch $@

# Debian's Chromium and its driver; elsewhere put `chromium` and `chromedriver` on the path
browser: dev .venv/.browser  ## The pages in a real Chromium; pictures of them go to .browser
	command -v chromium >/dev/null && command -v chromedriver >/dev/null || apt-get install -y chromium chromium-driver
	TACIT_REQUIRE_BROWSER=1 TACIT_PICTURES=.browser $(BIN)/python -m pytest -m browser tests/serve

.venv/.browser: requirements/browser.lock .venv/.dev
	$(PIP) --require-hashes -r requirements/browser.lock
	@touch $@

fuzz: dev .venv/.fuzz  ## 40,000 requests that schemathesis makes of openapi.json, and 10,000 times raw bytes, in about ten minutes
	PYTHONPATH=.:tests $(BIN)/python tests/serve/schema_fuzz.py .venv/fuzz/bin/schemathesis

# an environment of its own, so that the tests need none of what schemathesis needs
.venv/.fuzz: requirements/fuzz.lock .venv/.core
	$(PYTHON) -m venv .venv/fuzz
	.venv/fuzz/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/fuzz.lock
	@touch $@

bench: dev  ## Speed and accuracy against peers in the same run
	$(BIN)/python -m benchmarks

TABLES := adult adult14 flights bank diamonds fertility binary independent tree parity
peers: dev .venv/.peers .venv/.synthesis  ## Polytopes against hopsy and polytopewalk, accuracy against AIM, MST and others, in some hours
	$(BIN)/python -m benchmarks.bench_polytope
	$(BIN)/python -m benchmarks.bench_accuracy --tables $(TABLES) --epsilon 0.1 0.3 1 3 pure --runs 3
	$(BIN)/python -m benchmarks.bench_large --aim

.venv/.peers: requirements/bench.lock .venv/.dev
	$(PIP) --require-hashes -r requirements/bench.lock
	@touch $@

# mbi needs jax, which the tests do without, so it has an environment of its own
.venv/.synthesis: requirements/synthesis.lock .venv/.core
	$(PYTHON) -m venv .venv/synthesis
	.venv/synthesis/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/synthesis.lock
	@touch $@

lock:  ## Resolve the lock files again (needs uv)
	uv pip compile -q --universal --generate-hashes --no-header --no-annotate pyproject.toml requirements/setup.in -o requirements/core.lock
	uv pip compile -q --universal --generate-hashes --no-header --no-annotate pyproject.toml requirements/setup.in --group dev -c requirements/core.lock -o requirements/dev.lock
	uv pip compile -q --universal --generate-hashes --no-header --no-annotate pyproject.toml requirements/setup.in --extra serve -c requirements/dev.lock -o requirements/serve.lock
	echo "psycopg[binary]>=3.2,<4" | uv pip compile -q --universal --generate-hashes --no-header --no-annotate - -c requirements/dev.lock -o requirements/postgres.lock
	uv pip compile -q --universal --generate-hashes --no-header --no-annotate pyproject.toml requirements/setup.in --group dev --extra spark -c requirements/dev.lock -o requirements/engines.lock
	uv pip compile -q --universal --generate-hashes --no-header --no-annotate pyproject.toml requirements/setup.in --group dev --group bench -c requirements/dev.lock -o requirements/bench.lock
	uv pip compile -q --universal --generate-hashes --no-header --no-annotate --group docs -o requirements/docs.lock
	uv pip compile -q --universal --generate-hashes --no-header --no-annotate --group browser -c requirements/dev.lock -o requirements/browser.lock
	uv pip compile -q --universal --generate-hashes --no-header --no-annotate --python-version 3.11 --group synthesis -o requirements/synthesis.lock
	uv pip compile -q --universal --generate-hashes --no-header --no-annotate --python-version 3.11 --group fuzz -o requirements/fuzz.lock

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
