# make train   trains on ALE Pong (make train FLAGS="--level_name=... ...")
# make test    runs the tests (make test TESTS=tests/vtrace_test.py)
#
# Both make a virtual environment in .venv first if there is none. PYTHON
# chooses the interpreter it is made with: make train PYTHON=python3.12

PYTHON ?= python3
VENV ?= .venv
FLAGS ?=
TESTS ?= tests
# Exported, not set in the command: make then runs Python itself, without a shell
# in between, which would keep SIGTERM to itself.
export TF_CPP_MIN_LOG_LEVEL = 3
RUN = $(VENV)/bin/python

.PHONY: train test clean

train: $(VENV)/installed
	$(RUN) experiment.py --flagfile=configs/pong_two_cores.flags $(FLAGS)

test: $(VENV)/installed
	$(RUN) -m pytest $(TESTS)

$(VENV)/installed: setup.py
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(not (3, 10) <= v <= (3, 13) and "Python 3.10 to 3.13 is needed, this is %d.%d: make PYTHON=python3.12" % v)'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info
