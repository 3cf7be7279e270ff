# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: all check demo lint slow test clean

all: test

$(BIN)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

# Restore a sample, optimize its stream, prove the script, print the summary.
SAMPLE ?= pages
demo: $(BIN)/.ready
	mkdir -p out
	$(BIN)/tersql optimize data/$(SAMPLE)/stream.jsonl.gz --dump data/$(SAMPLE)/before.sql.gz \
	    --timezone UTC --verbose --output out/$(SAMPLE).sql
	$(BIN)/tersql verify out/$(SAMPLE).sql data/$(SAMPLE)/stream.jsonl.gz --dump data/$(SAMPLE)/before.sql.gz \
	    --timezone UTC

test: $(BIN)/.ready
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest

# Byte counts of data/ against data/bytes.toml.
check: $(BIN)/.ready
	$(BIN)/tersql check data --effort low --timezone UTC --time-limit 600

lint: $(BIN)/.ready
	$(BIN)/ruff check .
	$(BIN)/mypy

slow: $(BIN)/.ready
	$(BIN)/pytest -m slow

clean:
	rm -rf $(VENV) build *.egg-info
