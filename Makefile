# jobgate: what a newcomer types. `make help` lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
# Most tests wait for something, so even two cores keep six workers going.
JOBS ?= $(shell $(PYTHON) -c 'import os; print(max(6, os.cpu_count() or 6))')

.PHONY: help setup demo dev test fuzz test-cluster check format bench lock openapi clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(VENV)/.installed: requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("jobgate needs Python 3.11 or newer; set PYTHON=") if sys.version_info < (3, 11) else None'
	@echo "setting up $(VENV) (once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

setup: $(VENV)/.installed ## install everything into .venv

demo: $(VENV)/.installed ## run every example on an embedded cluster; ARGS=--exit ends afterwards
	@$(BIN)/jobgate demo $(ARGS)

dev: $(VENV)/.installed ## serve from an embedded database and cluster; ARGS are those of `jobgate dev`
	@$(BIN)/jobgate dev $(ARGS)

test: $(VENV)/.installed ## all tests, on the embedded parts
	$(BIN)/pytest -n $(JOBS) --dist worksteal $(ARGS)

fuzz: $(VENV)/.installed ## property tests with random examples for ten minutes; ARGS="--seconds=60 tests/domain"
	@$(BIN)/python -m tools.fuzz $(ARGS)

test-cluster: $(VENV)/.installed ## conformance and end-to-end suites on a real control plane
	$(BIN)/python -m tools.test_cluster $(ARGS)

check: $(VENV)/.installed ## format, lint, types, import directions, generated files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.check_generated

format: $(VENV)/.installed ## rewrite files as `make check` wants them
	$(BIN)/ruff check --fix --silent . ; $(BIN)/ruff format .

openapi: $(VENV)/.installed ## regenerate openapi/openapi.json
	$(BIN)/jobgate openapi > openapi/openapi.json.new && mv openapi/openapi.json.new openapi/openapi.json

bench: $(VENV)/.installed ## measure beside a real kube-apiserver
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bench.txt
	$(BIN)/python -m bench $(ARGS)

lock: $(VENV)/.installed ## pin the dependencies of pyproject.toml anew
	$(BIN)/python -m tools.lock

clean: ## remove what the targets made
	rm -rf $(VENV) .jobgate .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
