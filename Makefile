# Every verb says what it does: `make` or `make help` prints the lines behind the double hashes.
VENV   := .venv
# One more than two processors, because some tests wait in real time. Each takes up to 0.6 GB, and its Java up to 1.3 GB.
WORKERS := $(shell awk '/^MemAvailable/ { print ($$2 < 6e6) ? 2 : 3 }' /proc/meminfo)
PYTEST := $(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal
STAMP  := $(VENV)/.ready
BASE   := $(VENV)/.ready-base
# Tests start hundreds of processes, each of which would compile the product anew.
unexport PYTHONDONTWRITEBYTECODE
COVERED := language algebra planner progress execution

.DEFAULT_GOAL := help
.PHONY: help setup demo test check long one golden rewrite coverage day kills power-cuts mutants seeds typecheck lint sim sizes bench bench-peers bench-diff clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml tools/setup.sh
	@bash tools/setup.sh $(VENV)
	@touch $(BASE) $@

$(BASE): pyproject.toml tools/setup.sh
	@MOTELOOM_EXTRAS= bash tools/setup.sh $(VENV)
	@touch $@

setup: $(STAMP) ## make .venv with everything in it, Java for Spark included

demo: $(BASE) ## set up what it needs, then run a station with 54 simulated motes and ask it
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" bash examples/lab54/demo.sh

test: $(STAMP) ## set up, then run every test at small counts (MOTELOOM_SEED=n replays a run)
	@MOTELOOM_COUNTS=$${MOTELOOM_COUNTS:-small} $(PYTEST) $(ARGS)

check: $(STAMP) ## the same tests at full counts
	@MOTELOOM_COUNTS=full $(PYTEST) $(ARGS)

LONGEST := tests/rest/test_openapi.py tests/client/test_client.py tests/client/test_killed_station.py tests/history/test_generated_in_spark.py -k 'generated or cut_at or killed'
long: $(STAMP) ## the tests with a largest count: 50,000 requests, 1,000 cuts, 100 kills, 5,000 queries in Spark (MOTELOOM_SHARE=0.1 for a part)
	@MOTELOOM_COUNTS=long $(VENV)/bin/python -m pytest -s $(LONGEST) $(ARGS)

one: $(STAMP) ## one file, folder or test: make one T=tests/gateway/test_link.py (ARGS="-k late -x" as pytest takes them)
	@MOTELOOM_COUNTS=$${MOTELOOM_COUNTS:-small} $(VENV)/bin/python -m pytest $(T) $(ARGS)

golden: $(STAMP) ## the golden files: queries, errors, plans, frames
	@MOTELOOM_COUNTS=small $(PYTEST) tests/golden $(ARGS)

rewrite: $(STAMP) ## write golden files and generated pages anew where the oracle agrees; read the diff before you commit
	@bash tools/rewrite.sh $(VENV) $(T)

coverage: $(STAMP) ## the tests at small counts; at least 95 % of the lines of each package of COVERED must run
	@MOTELOOM_COUNTS=small $(PYTEST) -o timeout=900 $(COVERED:%=--cov=basestation.%) --cov-report= $(ARGS)
	@for package in $(COVERED); do echo "coverage: basestation.$$package"; \
	  $(VENV)/bin/coverage report --include="basestation/$$package/*" --skip-covered --show-missing --fail-under=95 \
	  || exit 1; done

day: $(STAMP) ## the office of 54 motes for HOURS (24) as fast as it goes, with users and faults
	@MOTELOOM_HOURS=$(or $(HOURS),24) $(VENV)/bin/python -m pytest tests/station/test_day_at_speed.py $(ARGS)

kills: $(STAMP) ## kill a station by SIGKILL at N moments (1,000), at each named point and at random ones; compare all answers
	@MOTELOOM_KILLS=$(or $(N),1000) $(PYTEST) tests/station/test_kill_points.py $(ARGS)

power-cuts: $(STAMP) ## start a station from N states (10,000) in which a disk may be after a power cut
	@MOTELOOM_POWER_CUTS=$(or $(N),10000) $(PYTEST) tests/station/test_power_loss.py -k power_cut $(ARGS)

mutants: $(STAMP) ## change operators line by line; each change must be caught by a test (ARGS=words chooses some)
	@$(VENV)/bin/python tools/mutants.py $(ARGS)

seeds: $(STAMP) ## the tests that draw from the seed, under N seeds in one go (N=10; ARGS="--jobs 2 --minutes 60 tests/replay")
	@$(VENV)/bin/python tools/seeds.py --count $(or $(N),10) $(ARGS)

typecheck: $(STAMP) ## mypy --strict over all packages
	@$(VENV)/bin/mypy

lint: $(STAMP) ## style, types, the import contract, private language, commit messages
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports --config importlinter.ini
	@$(VENV)/bin/python tools/ratchet.py
	@$(VENV)/bin/python tools/commits.py

sim: $(STAMP) ## run a scenario of simulated motes: make sim S=examples/lab54/calm.scenario.toml
	@$(VENV)/bin/moteloom sim run $(or $(S),examples/lab54/calm.scenario.toml) $(ARGS)

sizes: $(STAMP) ## lines of each package, longest modules, size of the wheel's packages
	@$(VENV)/bin/python tools/sizes.py

bench: $(STAMP) ## measure against hand-written ceilings and peers (FULL=1 every size, ARGS="W2 flat" chooses)
	@$(VENV)/bin/python -m bench $(if $(FULL),--full) $(ARGS)

bench-peers: $(STAMP) ## make an environment for each peer that pip can get
	@$(VENV)/bin/python -m bench.peers.make

bench-diff: $(STAMP) ## what the last run of each case found that the run before it did not
	@$(VENV)/bin/python -m bench.diff

clean: ## remove .venv and everything that was generated beside the sources
	@rm -rf $(VENV) bench/peers/.venv .pytest_cache .hypothesis .ruff_cache .mypy_cache .import_linter_cache .coverage htmlcov build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "clean: done"
