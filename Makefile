# Every target sets up what it needs: a virtual environment in .venv, from pinned versions.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint requirements-dev.txt

.PHONY: demo test quick first-hour coverage lint simnet bench docs linkcheck torture mutants flower dist clean

demo: $(VENV)/.run  ## a median over 15 nodes, by both methods: results, who was exposed, and a picture
	$(BIN)/midst run --graph rgg --nodes 15 --seed 7 --bounds -3:3 --method both --plot demo.png
	@echo "The picture is in demo.png. Next: source $(BIN)/activate, then: midst up --graph ring --nodes 5 --out result.json"

test: $(VENV)/.dev $(VENV)/.chromium  ## the whole test-suite
	$(BIN)/python -m pytest -n auto

QUICK := tests/protocol tests/engines/test_contract.py tests/cli/test_main.py \
  $(patsubst %,tests/net/test_%.py,charter wire journal peer gossip session) \
  $(patsubst %,tests/test_%.py,first_answers solving rooms exported_members docs) \
  tests/test_capabilities.py tests/goldens

quick: lint  ## lint, and the tests that a change needs most: a minute and a half
	$(BIN)/python -m pytest -n auto $(QUICK) -k 'not (test_build_without_warnings or test_cells_run or test_everybody_finds_what_is_right)'

first-hour: $(VENV)/.dev  ## every command of README and docs, in a new environment that has what `make demo` brings and no more
	rm -rf .first-hour
	$(MAKE) demo VENV=.first-hour
	MIDST_BIN=$(CURDIR)/.first-hour/bin/midst $(BIN)/python -m pytest -n auto tests/test_first_hour.py

coverage: $(VENV)/.dev $(VENV)/.chromium  ## the same, and which lines and branches it reached; half as long again
	$(BIN)/python -m pytest -n auto --cov --cov-report=term:skip-covered

lint: $(VENV)/.dev  ## style, and types, strictly
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

simnet: $(VENV)/.dev  ## the network's code on a network that fails, with liars; SEEDS=17 LIARS=0 for others
	$(BIN)/python -m tests.simnet --seeds $(or $(SEEDS),0:200) --liars $(or $(LIARS),1) --workers 2

bench: $(VENV)/.dev  ## speed and rounds as ratios measured in one run; writes bench/results/
	$(BIN)/python -m bench.engines
	$(BIN)/python -m bench.run
	$(BIN)/python -m bench.rounds
	$(BIN)/python -m bench.choose_c
	$(BIN)/python -m bench.leakage
	$(BIN)/python -m bench.ping
	$(BIN)/python -m bench.network
	$(BIN)/python -m bench.search
	$(BIN)/python -m bench.calls
	$(BIN)/python -m bench.verify
	$(BIN)/python -m bench.mpyc
	$(BIN)/python -m bench.federated

docs: $(VENV)/.dev docs/figures/.made  ## the documentation, in docs/_build/html
	$(BIN)/python -m sphinx -j auto -W --keep-going -q docs docs/_build/html

docs/figures/.made: $(VENV)/.dev $(shell find src -name '*.py')  # most of the work, so only when the code has changed
	$(BIN)/midst paper --out docs/figures --runs 100
	@touch $@

linkcheck: $(VENV)/.dev  ## asks every outside link of the documentation; needs a network
	$(BIN)/python -m sphinx -q -b linkcheck -D nb_execution_mode=off docs docs/_build/linkcheck

torture: $(VENV)/.dev flower  ## the long runs of the test-suite, and those with Flower; RUNS=10000 for more
	MIDST_RUNS=$(or $(RUNS),10000) $(BIN)/python -m pytest -n auto -m torture

mutants: $(VENV)/.dev  ## plants attacks one at a time, which the tests must catch; PART=journal for some of them
	$(BIN)/python tests/mutants/run_mutants.py --workers $(or $(WORKERS),2) $(PART)

flower: .flower/.made  ## ten clients of Flower, three of them poisoned: its tests, and accuracy.png
	MIDST_RUNS=1 .flower/bin/python -m pytest tests/federated/test_flower.py
	.flower/bin/python examples/flower/run.py --out accuracy.png

dist: $(VENV)/.dev  ## builds wheel and sdist in dist/, and tries each on every Python found; needs a network
	$(BIN)/python tests/release/try_release.py

$(VENV)/.run: pyproject.toml requirements-dev.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[plot,explore]'
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	$(PIP) --requirement requirements-dev.txt --editable '.[all]'
	@touch $@

.flower/.made: pyproject.toml examples/flower/requirements.txt  # apart: Flower wants other versions than the rest does
	test -x .flower/bin/python || $(PYTHON) -m venv .flower
	.flower/bin/pip install --quiet --disable-pip-version-check --requirement examples/flower/requirements.txt --editable '.[plot,flower]'
	@touch $@

$(VENV)/.chromium: $(VENV)/.dev  # for the tests in a browser; without it, and without leave to install it, they are skipped
	@command -v chromium >/dev/null || { \
	  echo "installing chromium for the tests in a browser"; \
	  SUDO=$$([ "$$(id -u)" = 0 ] || echo "sudo -n"); export DEBIAN_FRONTEND=noninteractive; \
	  { $$SUDO apt-get update -qq && $$SUDO apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >/dev/null \
	  || echo "no chromium: the tests in a browser will be skipped"; }
	@command -v chromium >/dev/null && touch $@ || true

clean:
	rm -rf .venv .first-hour .flower docs/_build docs/figures docs/commands bench/results dist
