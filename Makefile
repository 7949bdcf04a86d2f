# Everything runs from .venv and node_modules, which the first target creates: pages need
# little, tests need torch. Where the index of pip has torch only with CUDA, TORCH_INDEX
# names another one that has the small build for the CPU.
PYTHON ?= python3
TORCH_INDEX ?=
VENV := .venv
BIN := $(VENV)/bin
MACHINE := $(PATH)
export PATH := $(CURDIR)/$(BIN):$(PATH)
export NO_MKDOCS_2_WARNING := 1
export JUPYTER_PLATFORM_DIRS := 1

INSTALL := $(BIN)/pip install --quiet --constraint constraints.txt \
	$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) --editable
NPM := npm ci --loglevel=error --ignore-scripts
INSTALLED := $(VENV)/site-installed
TESTS := $(VENV)/test-installed
PACKAGES := node_modules/installed
VENDOR := docs/assets/vendor/.installed
# The characters of formulas, of which the font keeps no others: it would be ten times as big.
# Hints for coarse screens, which the font of the text has none of, were another quarter.
FORMULAS := U+20-7E,U+B1,U+B7,U+D7,U+2C6,U+2DC,U+391-3C9,U+3D1,U+3D5,U+3F5,U+2016,U+2026
FORMULAS := $(FORMULAS),U+2032-2034,U+203E,U+2061-2064,U+210B,U+210E,U+2110,U+2112,U+2113
FORMULAS := $(FORMULAS),U+211B,U+212C,U+2130-2133,U+2190-2194,U+21A6,U+2200-2209,U+220F-221E
FORMULAS := $(FORMULAS),U+2225-222B,U+2248,U+2260-226B,U+2282-2287,U+2295-2299,U+22A4,U+22C5
FORMULAS := $(FORMULAS),U+22EE-22F1,U+2308-230B,U+23DE-23DF,U+27E8-27E9,U+27F5-27FA
FORMULAS := $(FORMULAS),U+1D400-1D419,U+1D434-1D467,U+1D49C-1D4B5,U+1D6E2-1D71B
# Beside it lies tests.zip.
ZIP := docs/snippets.zip
WORKERS ?= auto
# Without tests/conftest.py, so without torch.
IN_BROWSER = pytest -n $(WORKERS) --confcutdir tests/site tests/site
# The pages that show a snippet, a difference from it or what it prints, for pytest -k.
SHOWING = grep -rlE 'data-(snippet|from|to|output)="$(NAME)\.py[":]' --include=index.html site
EITHER = sed 's|^site/||; s|/index.html$$||' | paste -sd '|' | sed 's/|/ or /g'
ADDRESS ?= 127.0.0.1:8000
# Fails where something listens already, which MkDocs would tell in a traceback.
TAKEN = import socket; host, port = '$(ADDRESS)'.split(':'); \
	exit(not socket.socket().connect_ex((host, int(port))))
RECORDS ?= records
# Says what the Python of a target lacks, before anything runs.
NEEDS := -m verified_docs.needs

.PHONY: help serve site test browser mutants one new lint style types check gpu memcheck bench audit clean

help:  ## show this list
	@grep -hE '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

serve: $(VENDOR) $(ZIP)  ## build and serve; reloads when docs, snippets or records change
	@mkdir -p records
	@python -c "$(TAKEN)" || { echo "make $@: $(ADDRESS) is taken; name another address," \
		"as in \`make $@ ADDRESS=127.0.0.1:8001\`" >&2; exit 1; }
	mkdocs serve --dirty --livereload --dev-addr $(ADDRESS)

site: $(VENDOR) $(ZIP)  ## build the site into site/
	@# Built aside: where it fails, the site of before is still there.
	@mkdir -p records .cache/site
	mkdocs build --strict --clean --site-dir .cache/site
	python -m verified_docs.pages.policy .cache/site
	rm -rf site && mv .cache/site site

test: style  ## every check that needs no GPU; what is known in few cases, or ALL=1
	pytest -n $(WORKERS) $(if $(ALL),,--due) tests/snippets tests/compile tests/machinery \
		tests/diagrams tests/mutants tests/replays
	@# Two at a time: most of these are one process.
	$(MAKE) --jobs 2 types site
	$(MAKE) --jobs 2 check browser

browser: $(TESTS)
	$(IN_BROWSER)

mutants: $(TESTS)  ## run the bugs whose verdict is not fresh; all of them with ALL=1
	pytest -n $(WORKERS) tests/mutants

one: lint  ## all that concerns one snippet: make one NAME=softmax/online
	@test -f snippets/$(NAME).py || { echo "make $@: there is no snippets/$(NAME).py; write" \
		"make $@ NAME=softmax/online" >&2; exit 1; }
	@# Without -k, which would leave them unrecorded.
	pytest -q -n $(WORKERS) tests/snippets/$(dir $(NAME))test_$(notdir $(NAME)).py
	pytest -q -n $(WORKERS) tests/compile tests/mutants tests/replays \
		tests/machinery/test_benchmark.py -k "$(NAME).py or test_benchmark and $(NAME)"
	$(MAKE) site check
	$(IN_BROWSER) -q -k "$$($(SHOWING) | $(EITHER))"

new: $(INSTALLED)  ## lay out a rung: make new NAME=softmax/log_softmax FROM=one_row
	@python -m verified_docs new "$(NAME)" "$(FROM)"

lint: style types  ## ruff, mypy, and the schema of workflows

style: $(TESTS) $(VENDOR)
	ruff check
	ruff format --check

types: $(TESTS)
	mypy
	check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml

check: $(VENDOR) $(ZIP)  ## compare the built site with its sources (ARGS="--require gpu" to publish)
	@test ! -e .cache/site || { echo "make check: the last build did not end well, and" \
		"site/ is an earlier one: run \`make site\`" >&2; exit 1; }
	python -m verified_docs check $(ARGS)

# On a GPU machine: with its own torch and triton, so without .venv.
gpu memcheck bench: export PATH := $(MACHINE)
RECORD = $(PARTS) $(if $(ALL),--all) --records $(RECORDS)

gpu:  ## test on this machine's GPUs what is stale, and record it (ALL=1, RECORDS=DIR)
	@$(PYTHON) $(NEEDS) "make $@" torch triton numpy pytest hypothesis transformers
	$(PYTHON) -m verified_docs gpu $(RECORD)

memcheck:  ## the same tests, thinned, under compute-sanitizer; races in demos
	@command -v compute-sanitizer >/dev/null || { echo "make $@: compute-sanitizer is" \
		"not on the path; it comes with the CUDA toolkit" >&2; exit 1; }
	@$(PYTHON) $(NEEDS) "make $@" torch triton numpy pytest hypothesis transformers
	$(PYTHON) -m verified_docs gpu --memcheck $(RECORD)
	$(PYTHON) -m pytest -q -p no:cacheprovider tests/memcheck

bench:  ## time the kernels and their peers on this machine's GPU and record it
	@$(PYTHON) $(NEEDS) "make $@" torch triton
	$(PYTHON) -m benchmarks $(PARTS)

audit: $(TESTS) $(VENDOR)  ## print the site's figures: build time, Lighthouse
	python -m tests.site.audit

clean:  ## remove what the other targets made, the installed packages too
	rm -rf $(VENV) node_modules docs/assets/vendor docs/*.zip docs/zips site .cache .pytest_cache \
		.hypothesis .ruff_cache .mypy_cache *.egg-info

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) $(NEEDS) make
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[site]'
	touch $@

$(PACKAGES): package.json package-lock.json $(INSTALLED)
	$(NPM) --omit=dev
	touch $@

$(TESTS): $(PACKAGES)
	$(INSTALL) '.[test]'
	$(NPM)
	touch $(PACKAGES) $@

$(VENDOR): $(PACKAGES) Makefile
	rm -rf docs/assets/vendor
	mkdir -p docs/assets/vendor/temml docs/assets/vendor/fonts
	cp node_modules/temml/dist/Temml-STIX2.css docs/assets/vendor/temml/
	pyftsubset node_modules/@fontsource/stix-two-math/files/stix-two-math-latin-400-normal.woff2 \
		--unicodes=$(FORMULAS) --no-hinting --flavor=woff2 \
		--output-file=docs/assets/vendor/temml/STIXTwoMath.woff2
	cp node_modules/@fontsource-variable/source-sans-3/files/source-sans-3-latin-wght-normal.woff2 \
		node_modules/@fontsource/jetbrains-mono/files/jetbrains-mono-latin-400-normal.woff2 \
		docs/assets/vendor/fonts/
	for package in source-sans-3 jetbrains-mono stix-two-math; do \
		cp node_modules/@fontsource*/$$package/LICENSE \
			docs/assets/vendor/fonts/$$package.txt; done
	touch $@

$(ZIP): $(wildcard LICENSE pytest.ini) $(shell find benchmarks records snippets tests verified_docs \
		-name '*.py' -o -name '*.json' 2>/dev/null) $(INSTALLED)
	python -m verified_docs.pages.archive docs
