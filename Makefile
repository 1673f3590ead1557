# Needs python3 (3.11 or newer) and make; the rest is installed into .venv on first use.

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS  := $(VENV)/.installed-docs

# Candidates, tried in this order; `make PYTHON=/path/to/python3 ...` puts one in front.
PYTHON  ?=
PYTHONS := $(PYTHON) python3 python3.13 python3.12 python3.11

.DEFAULT_GOAL := help
.PHONY: help demo kafka demo-kafka test test-long check format docs bench java clean distclean
# Steps share .venv and, on a bare machine, apt: with -j they still run one after another.
.NOTPARALLEL:
.DELETE_ON_ERROR:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: java $(STAMP) ## a burst against a small network: watch it shed, and what it says about the results
	$(BIN)/jettison demo

kafka: java $(STAMP) ## an Apache Kafka broker on 127.0.0.1:9092 with taxi trips in it, until Ctrl-C
	$(BIN)/jettison kafka

demo-kafka: java $(STAMP) ## the demo with trips from a Kafka broker
	$(BIN)/jettison demo --kafka

test: java $(STAMP) ## tests: core first (a minute), then those that need Spark (a quarter of an hour)
	$(BIN)/python -m pytest -m "core and not long" -n 2 --durations=10
	$(BIN)/python -m pytest -m "not core and not long" -n 2 --dist worksteal --durations=10

test-long: java $(STAMP) ## tests that take minutes each: drivers and workers that are killed, the figures of windows
	$(BIN)/python -m pytest -m long -n 2 --dist worksteal --durations=10

check: $(STAMP) ## lint, format, types, import rules (reports all four, then fails if any did)
	@failed=''; \
	run() { echo "$$*"; "$$@" || failed="$$failed [$$*]"; }; \
	run $(BIN)/ruff check .; \
	run $(BIN)/ruff format --check .; \
	run $(BIN)/mypy; \
	run $(BIN)/lint-imports; \
	if [ -n "$$failed" ]; then echo "make check failed:$$failed" >&2; exit 1; fi

format: $(STAMP) ## let ruff mend layout and imports in place
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Without --quiet, which would hide the warnings that --strict counts.
docs: $(DOCS) ## build the documentation as a site, from docs/ and docstrings (fails on a broken link)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --clean
	@echo "make: the site is in $(CURDIR)/site: open index.html, or with the search: python3 -m http.server -d site"

bench: java $(STAMP) ## every experiment at full length, one after another
	$(BIN)/jettison experiment run --all

java: ## find Java 17 or newer (as root with apt-get: install it)
	@sh scripts/java.sh

clean: ## remove caches, build products and what Spark leaves behind (keeps .venv)
	rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log artifacts
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## clean, and remove .venv too
	rm -rf $(VENV)

# The environment. A .venv that works is kept and brought up to date; one that does not is made anew.
$(STAMP): pyproject.toml
	@if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  py=''; \
	  for candidate in $(PYTHONS); do \
	    if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	      py="$$candidate"; break; \
	    fi; \
	  done; \
	  if [ -z "$$py" ]; then \
	    echo "make: no Python 3.11 or newer (tried: $(strip $(PYTHONS))). Install one, or say make PYTHON=/path/to/python3" >&2; \
	    exit 1; \
	  fi; \
	  if ! "$$py" -c 'import ensurepip, venv' >/dev/null 2>&1; then \
	    version=$$("$$py" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	    if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	      echo "make: $$py lacks ensurepip; installing python$$version-venv"; \
	      apt-get update -q && \
	      { apt-get install -y -q "python$$version-venv" || apt-get install -y -q python3-venv; } || exit 1; \
	    else \
	      echo "make: $$py cannot make virtual environments. Install its venv package" \
	           "(Debian, Ubuntu: apt-get install python$$version-venv) and try again." >&2; \
	      exit 1; \
	    fi; \
	  fi; \
	  echo "make: creating $(VENV) with $$py"; \
	  "$$py" -m venv --clear $(VENV) || exit 1; \
	fi
	@echo "make: installing into $(VENV) (the first time this downloads PySpark, some 450 MB)"
	$(BIN)/python -m pip install --disable-pip-version-check -e '.[dev]'
	@touch $@

$(DOCS): $(STAMP)
	$(BIN)/python -m pip install --disable-pip-version-check -e '.[docs]'
	@touch $@
