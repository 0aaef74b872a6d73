# `make help` lists what there is.

VENV := .venv
PY := $(VENV)/bin/python
CANDIDATES := python3.11 python3 python3.12 python3.13 python3.14
PYTHON ?= $(shell for p in $(CANDIDATES); do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)

unexport PYTHONPATH PYTHONHOME PIP_TARGET PIP_PREFIX PIP_USER VIRTUAL_ENV
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test lint docs bench soak nightly laws fuzz mutate clean

SEED ?= 0
SOAK_SECONDS ?= 3600
NIGHTLY_SECONDS ?= 300

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*##  */\1 /p' Makefile | while read -r name says; do printf 'make %-7s %s\n' "$$name" "$$says"; done

demo: $(VENV)/installed  ## why FlashAttention-2 moves 8 MiB and not 520 MiB at N = 8192, d = 128 on an H100
	@$(VENV)/bin/derive explain mha N=8192 d=128 --on h100-sxm

test: lint  ## every check: lint, then the tests
	$(PY) -m pytest -n 2

lint: $(VENV)/installed-dev  ## ruff, mypy --strict and the import contracts
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy
	$(VENV)/bin/lint-imports

docs: $(VENV)/installed-dev  ## the documentation as a site, in site/index.html
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

bench: $(VENV)/installed-dev  ## start-up, walker, check, growth, the whole catalogue and documents, timed; see benchmarks/README.md
	$(PY) benchmarks/cold_start.py
	$(PY) benchmarks/walker.py
	$(PY) benchmarks/check.py
	$(PY) benchmarks/growth.py
	$(PY) benchmarks/catalogue.py
	$(PY) benchmarks/documents.py

fuzz: $(VENV)/installed-dev  ## hostile input, each property with 50 times the examples and another seed each time: some minutes
	FUZZ=50 $(PY) -m pytest tests/hostile -p no:cacheprovider

mutate: $(VENV)/installed-dev  ## mutants of derive/ and rules/, all 11,200 of them: many hours, and it takes up where it stopped
	test -e .mutations/times-derive.json || $(PY) tests/mutations/sample.py --reach
	nice -n 19 $(PY) tests/mutations/sample.py

soak: $(VENV)/installed-dev  ## an hour of random configurations against the witnesses; SOAK_SECONDS=600 SEED=7 set length and seed
	$(PY) -m tests.soak --seed $(SEED) --seconds $(SOAK_SECONDS)

laws: $(VENV)/installed-dev  ## every law that `derive laws` prints, looked at where it says that it holds: an hour and more
	$(PY) -m tests.laws --seed $(SEED)

nightly: $(VENV)/installed-dev  ## the same for five minutes (NIGHTLY_SECONDS)
	$(PY) -m tests.soak --seed $(SEED) --seconds $(NIGHTLY_SECONDS)

clean:  ## remove the virtual environment and every cache
	rm -rf $(VENV) site build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/installed: $(VENV)/folder pyproject.toml
	$(PY) -m pip install --quiet --editable .
	@touch $@

$(VENV)/installed-dev: $(VENV)/folder pyproject.toml
	$(PY) -m pip install --quiet --editable '.[dev]'
	@touch $(VENV)/installed $@

# A virtual environment holds absolute paths, so one that was copied here with the folder is made anew.
ifneq ($(shell cat $(VENV)/folder 2>/dev/null),$(CURDIR))
.PHONY: $(VENV)/folder
endif

$(VENV)/folder:
	@test -n "$(PYTHON)" || { echo "error: Python 3.11 or newer is needed and none of $(CANDIDATES) is one; on Debian 12: apt-get install python3 python3-venv" >&2; exit 1; }
	@rm -rf $(VENV)
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null && $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "error: $(PYTHON) cannot make a virtual environment; on Debian 12: apt-get install python3-venv" >&2; exit 1; }
	@printf '%s\n' '$(CURDIR)' > $@
