# The commands for development. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
# Most tests wait rather than compute, so two cores are enough for six workers.
JOBS ?= $(shell $(PYTHON) -c 'import os; print(max(6, os.cpu_count() or 6))')
CHECKS := check-format check-lint check-types check-imports check-generated check-dashboard
# Without cached bytecode, every worker compiles all tests, and every process that a test starts compiles the product.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo dev test fuzz mutate test-cluster test-image test-openapi test-s3 test-gs test-az check format bench sdks dist lock openapi grafana clean $(CHECKS)

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(VENV)/.installed: requirements/dev.txt pyproject.toml jobgate/pyproject.toml setup.py
	@$(PYTHON) -c 'import sys; sys.exit("jobgate needs Python 3.11 or newer; set PYTHON=") if sys.version_info < (3, 11) else None'
	@echo "setting up $(VENV) (once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable ./jobgate --editable .
	@touch $@

# The sources of the dashboard. Its page is built again when one of them changes.
DASHBOARD := $(shell find dashboard -name node_modules -prune -o -name built -prune -o -name schema.d.ts -prune -o -type f -print)
PAGE := dashboard/built/index.html

$(PAGE): $(VENV)/.installed $(DASHBOARD) openapi/openapi.json tools/dashboard.py tools/notices.py
	@$(BIN)/python -m tools.dashboard build

setup: $(VENV)/.installed $(PAGE) ## install everything into .venv, and build the dashboard

demo: setup ## run every example on an embedded cluster; ARGS=--exit stops afterwards
	@$(BIN)/jobgate demo $(ARGS)

dev: setup ## serve from an embedded database and cluster; ARGS are those of `jobgate dev`
	@$(BIN)/jobgate dev $(ARGS)

test: setup ## run all tests, with the embedded database and cluster
	$(BIN)/pytest -n $(JOBS) --dist worksteal $(ARGS)

fuzz: $(VENV)/.installed ## run property tests with random examples for ten minutes; ARGS="--seconds=60 tests/domain"
	@$(BIN)/python -m tools.suites.fuzz $(ARGS)

mutate: $(VENV)/.installed ## change app/domain in one place at a time, and count the changes that its tests notice
	@$(BIN)/python -m tools.mutation $(ARGS)

test-cluster: setup ## run the conformance and end-to-end suites on a real control plane
	$(BIN)/python -m tools.suites.test_cluster $(ARGS)

test-image: $(VENV)/.installed ## build the container image, and test it on a real control plane; docs/testing.md says what it needs
	$(BIN)/python -m tools.suites.test_image $(ARGS)

test-openapi: $(VENV)/.installed ## compare the answers of a gateway with the OpenAPI document, by requests of Schemathesis
	@$(BIN)/python -m tools.suites.test_openapi $(ARGS)

test-s3: $(VENV)/.installed ## test the log store on an S3-compatible server, that of moto
test-gs: $(VENV)/.installed ## test gs:// on the server of moto
test-az: $(VENV)/.installed ## test az:// on Azurite
test-s3 test-gs test-az:
	@$(BIN)/python -m tools.suites.test_store $(@:test-%=%) $(ARGS)

sdks: $(VENV)/.installed ## generate clients in four languages, compile them and run a scenario with each
	@$(BIN)/python -m tools.sdks $(ARGS)

# The checks run at once, because mypy takes longer than all others together and uses one core. Each prints its output
# when it ends, where make can do so: macOS has GNU make 3.81. All of them run, even if one fails.
check: $(VENV)/.installed ## check format, lint, types, import directions and generated files
	@$(MAKE) --no-print-directory --keep-going --jobs $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) $(CHECKS)

check-format:
	$(BIN)/ruff format --check .

check-lint:
	$(BIN)/ruff check .

check-types:
	$(BIN)/mypy

check-imports:
	$(BIN)/lint-imports

check-generated:
	$(BIN)/python -m tools.generators.check_generated

check-dashboard:
	@$(BIN)/python -m tools.dashboard check

format: $(VENV)/.installed ## format all files as `make check` requires
	$(BIN)/ruff check --fix --silent . ; $(BIN)/ruff format .
	@$(BIN)/python -m tools.dashboard format

openapi: $(VENV)/.installed ## regenerate openapi/openapi.json and the generated parts of the client
	$(BIN)/jobgate openapi > openapi/openapi.json.new && mv openapi/openapi.json.new openapi/openapi.json
	$(BIN)/python -m tools.generators.client_types
	$(BIN)/python -m tools.generators.synchronous_client

grafana: $(VENV)/.installed ## regenerate deploy/monitoring/grafana-dashboard.json
	$(BIN)/python -m tools.generators.grafana_dashboard

bench: $(VENV)/.installed ## compare with a real kube-apiserver
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bench.txt
	$(BIN)/python -m bench $(ARGS)

dist: setup ## build the client and the server, each as a source distribution and as a wheel from it, into dist
	$(BIN)/python -m tools.dist

lock: $(VENV)/.installed ## update the lock files from pyproject.toml
	$(BIN)/python -m tools.lock
	$(BIN)/python -m tools.dashboard lock

clean: ## remove everything that the targets created
	rm -rf $(VENV) dashboard/node_modules dashboard/built dashboard/src/api/schema.d.ts .jobgate .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist *.egg-info jobgate/build jobgate/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
