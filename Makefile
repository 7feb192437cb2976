# The two README commands are `make conformance` and `make test`; both set everything up by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ADAPTER ?= sqlite
STAMP := $(VENV)/.installed
FOLDERS := model adapters conformance scenarios reports

.PHONY: conformance test check dev clean

conformance: $(STAMP)
	$(BIN)/pytest conformance --adapter=$(ADAPTER) -n auto $(ARGS)

test: $(STAMP)
	$(BIN)/pytest tests scenarios -n auto --dist worksteal $(ARGS)

check: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# mypy and pyright cannot see through the editable import hook: these links show them the packages.
dev: $(STAMP)
	mkdir -p build/types/fencepost
	for folder in $(FOLDERS); do ln -sfn ../../../$$folder build/types/fencepost/$$folder; done

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build .fencepost
