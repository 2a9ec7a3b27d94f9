# Every target sets up what it needs first (scripts/setup): nothing has to be installed beforehand but make and bash.
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast lint bench doctor
PYTEST_ARGS ?=
BENCHES := $(wildcard bench/*.py)

help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## the environment, a Docker engine, the workspace image, the local model
	@scripts/setup

demo: ## watch agents work, get judged and gated, in about three minutes
	@scripts/setup env engine image model
	@scripts/demo

test: ## the whole suite, in parallel, with coverage
	@scripts/setup
	@scripts/test -n 2 --dist=worksteal $(PYTEST_ARGS)

test-fast: ## what needs no Docker and little time
	@scripts/setup tools env
	@.venv/bin/python -m pytest -m "not docker and not long" $(PYTEST_ARGS)

lint: ## style, types, layers
	@scripts/setup env
	@scripts/lint

bench: ## every benchmark
	@scripts/setup
	@for bench in $(BENCHES); do echo "== $$bench"; .venv/bin/python $$bench || exit 1; done

doctor: ## what this machine has and lacks
	@scripts/setup env
	@.venv/bin/pytest-saber doctor
