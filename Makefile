# Everything this project does, by name. `make help` lists it.
#
# PYTHON is the interpreter that makes the environment: make demo PYTHON=python3.12

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PEERS_ARGS ?=
REPRODUCE_ARGS ?=
# Of each parametrised test so many cases are tried, of long ones fewer, or all where what it uses
# has changed.
CASES ?= 2
# Beside these, long tests in turn and those for changes, in so many seconds of one process; empty: all
# for changes.
FIT ?=
# What is done before the tests, two at once.
FIRST ?= check kernels
# Tests of jobs wait a third of their time, for Spark, servers and disks. Of cores, those given to us.
WORKERS ?= $(shell echo $$(($$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN) * 3 / 2)))

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests and measurements are of compiled kernels; a comment on its line would be part of the value.
export WINNOW_COMPILE ?= always
# What differs from what was pushed, or from the last commit; .ci/run says it otherwise.
export WINNOW_CHANGED ?= $(shell git diff --name-only '@{upstream}' 2>/dev/null || git diff --name-only HEAD 2>/dev/null)
unexport PYTHONDONTWRITEBYTECODE # processes by the hundred import what one has compiled

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.PHONY: help demo test thorough extras extras-if-had clouds cover check kernels wheel bench reproduce docs goldens clean

help: ## List what there is to make
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

demo: $(VENV)/.run ## Generate 1M + 1M tuples and replay them under every policy
	$(BIN)/python benchmarks/demo.py

test: $(VENV)/.dev ## Lint, type-check and run the tests, those of what has changed with all their cases
	$(MAKE) --no-print-directory --jobs 2 $(FIRST)
	$(BIN)/python -m pytest --cases $(CASES) $(FIT:%=--seconds %) \
	    -n $(WORKERS) --dist worksteal $(TEST_ARGS)
	NUMBA_ENABLE_CUDASIM=1 $(BIN)/python -m pytest tests/gpu/simulator --cases $(CASES) \
	    $(if $(FIT),--seconds $(shell echo $$(($(FIT) / 10)))) \
	    -n $(WORKERS) --dist worksteal $(TEST_ARGS)

thorough: export WINNOW_THOROUGH := 1
thorough: kernels extras clouds ## Run all tests, with the cases and repeats that `make test` leaves out
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(TEST_ARGS)
	NUMBA_ENABLE_CUDASIM=1 $(BIN)/python -m pytest tests/gpu/simulator \
	    -n $(WORKERS) --dist worksteal $(TEST_ARGS)
	$(BIN)/python tests/support/spark_versions.py

extras: $(VENV)/.dev ## Get what single tests need: a browser, pyright, Spark Connect, an object store
	$(INSTALL) pyright==1.1.414 'pyspark[connect]' 'moto[s3,server]==5.2.5' \
	    'obstore>=0.12,<0.13' 'deltalake==1.6.6' 'pyiceberg[sql-sqlite]==0.12.0'
	$(BIN)/python tests/support/browser.py

extras-if-had: $(VENV)/.dev
	$(MAKE) --no-print-directory extras || echo "without extras, tests that need them are skipped"

clouds: $(VENV)/.dev ## Get other object stores, Delta and Iceberg for tests, where npm, go, mvn, cargo are
	if command -v npm >/dev/null; then npm install --silent --no-audit --no-fund \
	    --prefix $(VENV)/node azurite@3.35.0; fi
	if command -v go >/dev/null; then GOBIN=$(abspath $(BIN)) \
	    go install github.com/fsouza/fake-gcs-server@v1.52.3; fi
	$(BIN)/python tests/support/hdfs.py
	$(BIN)/python tests/support/open_tables.py

cover: $(VENV)/.dev ## Run all tests and tell which lines they reach
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --cov --cov-report=
	NUMBA_ENABLE_CUDASIM=1 $(BIN)/python -m pytest tests/gpu/simulator -n $(WORKERS) --dist worksteal \
	    --cov --cov-append --cov-report=term

check: $(VENV)/.dev ## Lint and type-check alone
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

kernels: $(VENV)/.dev ## Compile what most tests need
	$(BIN)/python tests/support/compile_first.py

wheel: $(VENV)/.run ## Build a wheel with compiled kernels, for this Python, numba and architecture
	rm -rf build
	$(BIN)/winnow warm --out build/kernels
	WINNOW_WHEEL_KERNELS=$(abspath build/kernels) $(BIN)/python -m pip wheel --quiet --no-deps \
	    --wheel-dir dist .

bench: $(VENV)/.bench ## Measure, against other engines too; PEERS_ARGS
	for script in $(filter-out benchmarks/demo.py $(wildcard benchmarks/gpu_*.py),$(wildcard benchmarks/*.py)); do \
	    echo "== $$script"; $(BIN)/python $$script; done
	$(BIN)/python benchmarks/peers $(PEERS_ARGS)

reproduce: $(VENV)/.bench ## Measure and judge every figure of the papers; REPRODUCE_ARGS=--quick
	$(BIN)/python benchmarks/reproduce $(REPRODUCE_ARGS)

docs: $(VENV)/.run ## Write the tables of the documents that come from the code
	$(BIN)/python docs/tables.py

goldens: $(VENV)/.dev ## Write the goldens of help, reports and errors anew
	WINNOW_WRITE_GOLDENS=1 $(BIN)/python -m pytest -q tests/commands/test_goldens.py

clean: ## Remove the environment, the demo and everything else that was made
	rm -rf $(VENV) demo build dist *.egg-info .coverage htmlcov spark-warehouse metastore_db \
	    derby.log .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment. Each stamp says that its extras are installed for the pyproject.toml of its time.
# Python compiles the modules that are imported, when they are: pip would compile all there are.

# The Spark that tests pin is told first, or pip builds the newest one too.

INSTALL := $(BIN)/python -m pip install --quiet --no-compile
SPARK := $(shell sed -n 's/^ *"\(pyspark==[^"]*\)",$$/\1/p' pyproject.toml)

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python " + \
	    sys.version.split()[0] + " is too old: give 3.11 or newer, as in make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.run: $(VENV)/.python pyproject.toml docker/java.sh
	$(INSTALL) $(SPARK) -e ".$$(docker/java.sh)"
	touch $@

$(VENV)/.dev: $(VENV)/.python pyproject.toml docker/java.sh
	java=$$(docker/java.sh) && $(INSTALL) $(SPARK) -e ".[dev$${java:+,java}]"
	touch $(VENV)/.run $@

$(VENV)/.bench: $(VENV)/.run
	$(INSTALL) -e ".[bench]"
	touch $@
