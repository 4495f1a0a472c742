# Every target sets up what it needs: a virtual environment in .venv, from pinned versions.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint requirements-dev.txt

.PHONY: demo test coverage lint bench docs linkcheck torture mutants clean

demo: .venv/.run  ## a median over 15 nodes, by both methods: results, who was exposed, and a picture
	$(BIN)/midst run --graph rgg --nodes 15 --seed 7 --bounds -3:3 --method both --plot demo.png
	@echo "The picture is in demo.png. Next: $(BIN)/midst run --help"

test: .venv/.dev .venv/.chromium  ## the whole test-suite
	$(BIN)/python -m pytest -n auto

coverage: .venv/.dev .venv/.chromium  ## the same, and which lines and branches it reached; half as long again
	$(BIN)/python -m pytest -n auto --cov --cov-report=term:skip-covered

lint: .venv/.dev  ## style, and types, strictly
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/.dev  ## speed and rounds as ratios measured in one run; writes bench/results/
	$(BIN)/python -m bench.engines
	$(BIN)/python bench/run.py
	$(BIN)/python -m bench.rounds
	$(BIN)/python -m bench.choose_c
	$(BIN)/python -m bench.leakage
	$(BIN)/python -m bench.ping
	$(BIN)/python -m bench.network
	$(BIN)/python -m bench.search
	$(BIN)/python -m bench.calls
	$(BIN)/python -m bench.verify
	$(BIN)/python -m bench.mpyc

docs: .venv/.dev  ## the documentation, in docs/_build/html
	$(BIN)/midst paper --out docs/figures --runs 100
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html

linkcheck: .venv/.dev  ## asks every outside link of the documentation; needs a network
	$(BIN)/python -m sphinx -q -b linkcheck -D nb_execution_mode=off docs docs/_build/linkcheck

torture: .venv/.dev  ## the long runs of the test-suite; RUNS=10000 for more
	MIDST_RUNS=$(or $(RUNS),10000) $(BIN)/python -m pytest -n auto -m torture

mutants: .venv/.dev  ## plants bugs one at a time, which the tests must catch; PART=journal for some of them
	$(BIN)/python tests/mutants/run_mutants.py --workers $(or $(WORKERS),2) $(PART)

.venv/.run: pyproject.toml requirements-dev.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --editable '.[plot]'
	@touch $@

.venv/.dev: .venv/.run
	$(PIP) --requirement requirements-dev.txt --editable '.[all]'
	@touch $@

.venv/.chromium: .venv/.dev  # for the tests in a browser; without it, and without leave to install it, they are skipped
	@command -v chromium >/dev/null || { \
	  echo "installing chromium for the tests in a browser"; \
	  SUDO=$$([ "$$(id -u)" = 0 ] || echo "sudo -n"); export DEBIAN_FRONTEND=noninteractive; \
	  { $$SUDO apt-get update -qq && $$SUDO apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >/dev/null \
	  || echo "no chromium: the tests in a browser will be skipped"; }
	@command -v chromium >/dev/null && touch $@ || true

clean:
	rm -rf .venv docs/_build bench/results
