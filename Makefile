# `make` lists the targets. `make demo` and `make test` set everything up by themselves.
PYTHON ?= python3
BIN := .venv/bin
PARTS := ingest clustering coverage dashboard runtime
EVAL_DATA ?= ../shared/data
export CRASHPATH_EVAL_DATA := $(EVAL_DATA)
export ORT_DISABLE_TELEMETRY := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint dashboard corpus train bench replay screenshot clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.venv/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "crashpath needs Python 3.11 or newer: make PYTHON=python3.11 …")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --upgrade "pip>=25.1"
	$(BIN)/python -m pip install -q -c constraints.txt "torch==$$(sed -n 's/^torch==//p' constraints.txt)"
	$(BIN)/python -m pip install -q -c constraints.txt --group dev -e ".[postgres]"
	touch $@

.typing/.ready: Makefile
	mkdir -p .typing/crashpath
	for part in $(PARTS); do ln -sfn ../../$$part .typing/crashpath/$$part; done
	touch $@

setup: .venv/.ready .typing/.ready ## make .venv with crashpath and all that the other targets need

demo: setup ## run the main job on the crash logs in data/ and print what it finds
	$(BIN)/python -m crashpath.dashboard.demo

test: setup ## run the tests
	$(BIN)/python -m pytest

lint: setup ## ruff, mypy strict, import-linter
	$(BIN)/ruff check $(PARTS) tests benchmarks
	$(BIN)/ruff format --check $(PARTS) tests benchmarks
	$(BIN)/mypy $(addprefix .typing/crashpath/,$(PARTS))
	$(BIN)/lint-imports

dashboard: setup ## open the dashboard on the demo's store (or CRASHPATH_DB)
	CRASHPATH_DB=$${CRASHPATH_DB:-sqlite:///demo-out/crashpath.db} $(BIN)/crashpath dashboard

corpus: setup ## run the fault catalogue and rewrite data/crashlogs and data/labels.csv
	$(BIN)/python -m crashpath.coverage.corpus

train: setup ## train the class classifier on the corpus and write its artefact
	$(BIN)/python -m crashpath.clustering.train

bench: setup ## run every benchmark, print its tables, write benchmarks/results/
	$(BIN)/python benchmarks/run.py

replay: setup ## replay the account with its known rates; SEED=n moves them, SEEDS=5 runs five, PATHS=1 adds both paths
	$(BIN)/python benchmarks/replay.py $(if $(SEEDS),--seeds $(SEEDS),--seed $(or $(SEED),0)) $(if $(PATHS),--paths)

screenshot: setup ## take the pictures of docs/ in a real browser
	$(BIN)/python benchmarks/screenshot.py

clean: ## remove the virtual environment and what the tools left
	rm -rf .venv .typing build *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache demo-out replay-out
