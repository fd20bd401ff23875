# make         prints these lines
# make train   trains on ALE Pong (make train FLAGS="--level_name=... ...")
#              (the paper's own settings: docs/reproduction.md)
# make test    runs all tests but those of make storm, on all cores
#              (make test TESTS=tests/vtrace_test.py)
# make check   runs the linter, the type checker and the fast tests
# make storm   runs the tests that take minutes: faults, several learners,
#              benchmarks
# make mutations  breaks the program in many ways: a test must notice each
#              (make mutations FLAGS=--only=^vtrace)
# make oldest  trains, and runs the fast tests, with Python 3.10 and the lowest
#              versions that setup.py allows, in .venv-oldest
# make docs    builds the documentation in site/, from docs/ and the sources
# make clean   removes .venv, .venv-oldest and all that was built
#
# All make a virtual environment in .venv first if there is none, and install
# anew if setup.py has changed. PYTHON chooses the interpreter it is made with:
# make train PYTHON=python3.12

PYTHON ?= python3
VENV ?= .venv
# pyenv's python3.10 on the path fails unless that version is chosen.
OLDEST_PYTHON ?= $(shell for python in python3.10 \
	$(HOME)/.pyenv/versions/3.10.*/bin/python; do \
	$$python -c '' 2>/dev/null && echo $$python && break; done)
OLDEST ?= .venv-oldest
FLAGS ?=
TESTS ?= tests
# Processes that run tests: one per core and one more, since many tests wait.
JOBS ?= $(shell getconf _NPROCESSORS_ONLN | awk '{ print $$1 + 1 }')
# Exported, not set in the command: make then runs Python itself, without a shell
# in between, which would keep SIGTERM to itself.
export TF_CPP_MIN_LOG_LEVEL = 3
RUN = $(VENV)/bin/python
# Neighbours share what their class or module sets up, so they stay together,
# until a process has nothing left to do.
PYTEST = $(RUN) -m pytest --numprocesses=$(JOBS) --dist=worksteal

# The first target: bare make must neither install nor train.
help:
	@sed -n 's/^# \{0,1\}//p; /^$$/q' Makefile

.PHONY: help train test check storm mutations oldest docs clean

train: $(VENV)/installed
	$(RUN) experiment.py --recipe=appo_pong $(FLAGS)

test: $(VENV)/installed
	$(PYTEST) $(TESTS)

check: $(VENV)/installed
	$(RUN) -m ruff check .
	$(RUN) -m mypy
	$(PYTEST) -m 'not slow and not storm' $(TESTS)

storm: $(VENV)/installed
	$(RUN) -m pytest -m storm -o faulthandler_timeout=900 $(TESTS)

mutations: $(VENV)/installed
	$(RUN) tests/mutations.py $(FLAGS)

oldest: $(OLDEST)/installed
	directory=$$(mktemp -d); trap "rm -r $$directory" EXIT; \
		$(OLDEST)/bin/python experiment.py --recipe=cartpole \
		--total_environment_frames=2000 --logdir=$$directory
	$(OLDEST)/bin/python -m pytest --numprocesses=$(JOBS) --dist=worksteal \
		-m 'not slow and not storm' $(TESTS)

# Fails on a public name without a docstring, and on a broken link.
docs: $(VENV)/installed_docs
	$(RUN) -m ruff check --select=D100,D101,D104 scalable_agent
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict

$(VENV)/installed_docs: $(VENV)/installed
	$(RUN) -m pip install --quiet --editable '.[docs]'
	touch $@

# Python compiles what it imports: most files of the packages are never read.
$(VENV)/installed: setup.py
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(not (3, 10) <= v <= (3, 13) and "Python 3.10 to 3.13 is needed, this is %d.%d: make PYTHON=python3.12" % v)'
	@echo 'Installing TensorFlow, environments and tools into $(VENV): about 3.4 GB, some minutes.'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --no-compile --editable '.[dev]'
	touch $@

$(OLDEST)/installed: setup.py
	@test -n '$(OLDEST_PYTHON)' || { echo 'Python 3.10 is needed: make oldest OLDEST_PYTHON=PATH'; exit 1; }
	$(OLDEST_PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet uv
	$(OLDEST)/bin/python -m uv pip install --quiet --python=$(OLDEST)/bin/python \
		--resolution=lowest-direct --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) $(OLDEST) build dist site *.egg-info
