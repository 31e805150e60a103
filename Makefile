# Each target creates .venv and installs what it needs; nothing is reinstalled while
# pyproject.toml and constraints.txt stay as they are.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint bench docs clean

demo: .venv/installed
	$(BIN)/quasiratio demo -o demo

test: .venv/installed-dev
	$(BIN)/python -m pytest

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/sp-repo-review .

bench: .venv/installed-dev
	$(BIN)/python -m benchmarks

docs: .venv/installed-dev
	$(BIN)/mkdocs build --strict

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --upgrade pip
	$(PIP) -e .
	@touch $@

.venv/installed-dev: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --upgrade pip
	$(PIP) -e ".[all]" --group dev
	@touch $@ .venv/installed

clean:
	rm -rf .venv demo site .pytest_cache .mypy_cache .ruff_cache
