# Everything a person or CI runs. Each target makes what it needs; nothing but python3 and make has to be there.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help run test check format verify bench bench-peers bench-soak lock clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

run: $(READY) ## a job's life on an embedded Postgres, in your terminal
	@$(BIN)/ostinato demo

test: $(READY) ## all tests, on an embedded Postgres and whatever other server is at hand
	$(BIN)/pytest $(ARGS)

check: $(READY) ## format, lint, types, who may import whom, generated files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m ostinato_cli.pages --check

format: $(READY) ## let ruff put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

verify: $(READY) ## write the generated pages anew and show what changed
	$(BIN)/python -m ostinato_cli.pages
	git diff --exit-code -- docs

bench: $(READY) ## speed as ratios against bare SQL on the same server (about 5 minutes; ARGS=--quick for a look)
	$(BIN)/python -m bench $(ARGS)

bench-peers: $(READY) ## the same jobs through other queues, side by side (hours; ARGS="--peers ours,river --quick" for a look)
	$(BIN)/python -m bench.peers $(ARGS)

bench-soak: $(READY) ## one worker at full speed for 10 minutes: does it grow, does it lose anything? (ARGS="--minutes 1" for a look)
	$(BIN)/python -m bench.soak $(ARGS)

lock: $(READY) ## pin every dependency again
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --all-extras --no-emit-package ostinato \
		--custom-compile-command 'make lock' -o requirements.lock pyproject.toml

clean: ## remove the environment, the caches and .ostinato (root keeps its database in /var/lib/ostinato)
	rm -rf .venv .ostinato .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist

$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "ostinato needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.12" >&2; exit 1; }
	@echo "making .venv (once)" >&2
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
