# Every command a contributor needs; `make help` lists them.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
DEMO := fixtures/demo
DEMO_TRACE := $(DEMO)/gpt-oss-TP-0.trace.json.gz

.PHONY: help demo test check fuzz golden bench peers clean

help: ## this list
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 10

# Re-made when pyproject.toml changes, so that one command is always enough.
$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@$(BIN)/python -m compileall -q trace_sql # else the first command does, or each where Python may not
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

fuzz: $(VENV)/.ready ## broken files at random, for minutes; FUZZ=100: a hundred times what test does
	TRACE_SQL_FUZZ=$(or $(FUZZ),20) $(BIN)/python -m pytest -q -n auto tests/test_fuzz.py

golden: $(VENV)/.ready ## rewrite the golden files and the demo trace; explain each change
	$(BIN)/python -m fixtures demo
	$(BIN)/python -m pytest -q --update-golden tests/test_reports.py tests/test_attention_shipped.py

bench: $(VENV)/.ready ## speed and memory beside a floor and peers, 3 minutes; BENCH=--full: to 2 GB
	$(BIN)/python -m tests.benchmarks $(BENCH)

peers: ## what bench compares with, in an environment of its own
	$(PYTHON) -m venv .peers
	.peers/bin/python -m pip install --quiet --disable-pip-version-check -r tests/benchmarks/peers.txt

clean: ## remove what the other commands made
	rm -rf $(VENV) .peers .mypy_cache .ruff_cache .pytest_cache dist
