# The two commands: `make demo` and `make test`. Both work on a fresh machine with Python 3.11 or later.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# workers for the tests, one for each core: more of them only import everything once more
JOBS ?= auto

# what Spark runs on, where it is missing and can be had
JAVA := (test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -y -qq openjdk-17-jre-headless > /dev/null)

.PHONY: demo test check lint audit soak bench experiments clean

$(VENV)/installed: pyproject.toml constraints.txt
	@echo "installing into $(VENV), with what tests need: two minutes or more"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	@command -v java > /dev/null || test -x "$$JAVA_HOME/bin/java" || $(JAVA) || echo "tests on Spark need Java 17"
	touch $@

$(VENV)/light: pyproject.toml constraints.txt
	@echo "installing into $(VENV), about a minute"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[plots]'
	touch $@

$(VENV)/benched: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[bench]'
	touch $@

demo: $(VENV)/light
	$(BIN)/discreet demo

# types are checked, on one core, while the tests start
test: $(VENV)/installed
	$(MAKE) --no-print-directory --jobs 2 lint check

# matrices are small and workers as many as cores; what was compiled is kept for the many processes that tests start
check: export OMP_NUM_THREADS = 1
check: export PYTHONDONTWRITEBYTECODE =
check: $(VENV)/installed
	# a worker that died ends the run: with another in its place the scheduler of groups waits for ever
	$(BIN)/python -m pytest --numprocesses $(JOBS) --max-worker-restart 0

# the whole of what `test` runs a share of: 10,000 random questions, 1,000 kills on each store, long audits; hours
soak: export DISCREET_SOAK = 1
soak: export OMP_NUM_THREADS = 1
soak: $(VENV)/installed
	$(BIN)/python -m pytest --numprocesses $(JOBS) --timeout 7200

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/mypy

# the questions of the demo on made-up neighbours of its table, with frozen and fresh noise
audit: $(VENV)/installed
	$(BIN)/discreet audit session --demo

bench: $(VENV)/benched
	for script in benchmarks/[a-z]*.py; do echo "== $$script"; OMP_NUM_THREADS=1 $(BIN)/python $$script || exit 1; done

experiments: $(VENV)/installed
	for script in experiments/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) experiments/out
