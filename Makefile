# Every target sets up what it needs: `make demo` and `make test` work on a fresh clone with Python >= 3.11.
PYTHON ?= python3
VENV := .venv
ifeq ($(OS),Windows_NT)
  BIN := $(VENV)/Scripts
else
  BIN := $(VENV)/bin
endif
READY := $(VENV)/.ready

.PHONY: demo test test-slow test-cluster fault lint bench picture tables clean

demo: $(READY)
	$(BIN)/isde demo

# Two workers: 7 minutes on two cores in place of 13.
test: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Minutes: optima of large tables against other solvers' (tests/golden), every item of the paper at its quick setting.
test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

# Real Dask and Ray clusters on this machine. `make test` runs the same where they are installed, and skips by name else.
test-cluster: $(READY)
	$(BIN)/python -m pip install --quiet --editable ".[dask,ray]"
	$(BIN)/python -m pytest -m cluster

# Many minutes: files cut, changed and made to harm, processes killed; a table of what was tried, survived and lost.
fault: $(READY)
	$(BIN)/python -m tests.fault

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Rebuilt only when pyproject.toml is newer than the last complete installation.
$(READY): pyproject.toml
	$(PYTHON) -c "import sys; v = sys.version_info; sys.exit(v < (3, 11) and f'isde needs Python 3.11 or newer, and $(PYTHON) is {v.major}.{v.minor}: call make PYTHON=python3.11')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group dev
	$(BIN)/python -c "open('$(READY)', 'w').close()"

# The picture of a fit in the README, by the software itself.
picture: $(READY)
	$(BIN)/python docs/fit_picture.py

# Tables of the docs that follow from registries; a test compares them.
tables: $(READY)
	$(BIN)/python docs/registry_tables.py

bench: $(READY)
	$(BIN)/python benchmarks/bench_engine.py
	$(BIN)/python benchmarks/bench_selection.py
	$(BIN)/python benchmarks/scaling.py

clean:
	$(PYTHON) -c "import shutil; shutil.rmtree('$(VENV)', ignore_errors=True)"
