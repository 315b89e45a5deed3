# Every target sets up what it needs and does nothing twice. `make help` lists them.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

run := .venv/bin
results ?= runs/demo
site ?= build/site
pytest_args ?=

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# --- what the other targets need --------------------------------------------------------------------------------------

.PHONY: python engine base-image browser demo-images images
python: ## .venv with everything in the versions of constraints.txt
	@tools/setup_python.sh

engine: ## a Docker engine that answers
	@tools/setup_engine.sh

base-image: engine ## python:3.11-slim-bookworm, pulled or made
	@tools/base_image.sh

browser: ## chromium, for the tests of the site
	@tools/setup_browser.sh

demo-images: python base-image ## base images and two learners: what demo, test and bench run
	@$(run)/python tools/build_images.py ncm replay

images: python base-image ## base images, the example and the reference learners
	@$(run)/python tools/build_images.py

# --- what one comes for -----------------------------------------------------------------------------------------------

.PHONY: demo test lint bench
demo: demo-images ## two learners through the protocol, and the site that shows them
	$(run)/suite submit suite-ncm:latest --track digits-smoke --results $(results)
	$(run)/suite submit suite-reference:replay --track digits-smoke --results $(results)
	$(run)/suite site build --results $(results) --out $(site)
	@$(run)/suite results show --results $(results)
	@echo "site: $(abspath $(site))/index.html"

test: demo-images browser ## all tests, with coverage
	$(run)/pytest --cov --cov-report=term $(pytest_args)

lint: python ## style, types, layers, workflows
	$(run)/ruff check
	$(run)/ruff format --check
	$(run)/mypy
	$(run)/lint-imports
	@workflows=$$(find .github/workflows -name '*.y*ml' 2>/dev/null); \
	if [ -n "$$workflows" ]; then \
	  set -x; \
	  $(run)/check-jsonschema --builtin-schema vendor.github-workflows $$workflows; \
	  $(run)/zizmor --offline --quiet $$workflows; \
	fi

bench: demo-images ## what the harness costs, as paired ratios
	$(run)/python tools/bench.py

# --- and away with it -------------------------------------------------------------------------------------------------

.PHONY: clean distclean
clean: ## remove what builds and checks have left
	rm -rf build dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean ## also the Python environment and the downloaded wheels; results and images stay
	rm -rf .venv .whl
