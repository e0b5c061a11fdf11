# Every command a contributor needs; `make help` lists them.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
DEMO := fixtures/demo
DEMO_TRACE := $(DEMO)/gpt-oss-TP-0.trace.json.gz

.PHONY: help demo test check golden bench clean

help: ## this list
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 10

# Re-made when pyproject.toml changes, so that one command is always enough.
$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(VENV)/.ready ## the layer report of the trace that ships here
	$(BIN)/trace-sql layers $(DEMO_TRACE) --config $(DEMO)/config.json

test: $(VENV)/.ready ## all tests
	$(BIN)/python -m pytest -q -n auto

check: $(VENV)/.ready ## format, lint, types, import direction, SQL format
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/sqlfmt --check --quiet --line-length 100 sql
	$(BIN)/mypy
	$(BIN)/lint-imports

golden: $(VENV)/.ready ## rewrite the golden files and the demo trace; explain each change
	$(BIN)/python -m fixtures demo
	$(BIN)/python -m pytest -q --update-golden tests/test_reports.py

bench: $(VENV)/.ready ## speed and memory as a table, peers beside us
	$(BIN)/python -m tests.benchmarks

clean: ## remove what the other commands made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache dist
