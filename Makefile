# Each target creates .venv and installs what it needs; nothing is reinstalled while
# pyproject.toml and constraints.txt stay as they are.
PYTHON ?= python3
WORKERS ?= 2
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help demo check test test-all lint bench docs figures clean

help:
	@echo "make demo    two signed samples, four methods, figures and report.html in demo/"
	@echo "make check   the linters and the tests that train nothing, in a minute: for every commit"
	@echo "make test    all tests, doctests and the code of the documentation, but what is marked slow"
	@echo "make test-all  with the long mutations and kills as well"
	@echo "make lint    ruff, mypy, import-linter, repo-review"
	@echo "make docs    the documentation in site/"
	@echo "make figures the figures of its tutorials, each by the code of its page"
	@echo "make bench   accuracy and speed, written to docs/benchmarks.md"
	@echo "make clean   removes .venv and everything that was built"

demo: .venv/installed
	$(BIN)/quasiratio demo -o demo

# One thread per worker, so that WORKERS processes do not compete for the cores.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
FAST := $(addprefix tests/,distributions io losses metrics model_files/test_bundle.py model_files/test_strict_json.py networks ratios test_atomic_files.py test_errors.py test_house.py test_sample.py)

check: lint
	$(PYTEST) -m "not slow" $(FAST)

test: .venv/installed-dev
	$(PYTEST) -m "not slow"

test-all: .venv/installed-dev
	$(PYTEST)

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

figures: .venv/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m docs_extensions.draw_figures

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("quasiratio needs Python 3.11 or newer: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv

# The development environment contains the other, so either marker will do for `demo`.
.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --upgrade pip
	$(PIP) -e .
	@touch $@

.venv/installed-dev: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --upgrade pip
	$(PIP) -e ".[all]" --group dev
	@touch $@ .venv/installed

clean:
	rm -rf .venv demo site dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
