# Two commands matter: `make demo` runs the main job on this machine, `make test` runs the tests.
# Both set up what they need inside this folder (.venv, .demo) and nothing outside it.

PYTHON ?= python3
VENV := .venv
PEER := .venv-peer
DBT := .venv-dbt
OTHER_DBTS := $(patsubst tests/planner/dbt/requirements-%.txt,%,$(wildcard tests/planner/dbt/requirements-*.txt))
CONSUMERS := .venv-consumers
AIRFLOW := .venv-airflow
DAGSTER := .venv-dagster
PROOFS := $(DBT) $(OTHER_DBTS:%=.venv-dbt-%) $(CONSUMERS) $(AIRFLOW) $(DAGSTER)  # environments that only `make prove` needs
LAKEHOUSE := tests/planner/test_kinds_by_format.py tests/planner/test_forward_kinds.py tests/planner/test_kills.py \
	tests/planner/test_null_keys.py \
	tests/planner/test_history_lives.py tests/planner/test_history_from_scratch.py tests/planner/cli/test_drift.py \
	tests/planner/test_column_names.py tests/planner/tables/test_writing.py tests/planner/tables/test_overwrite.py tests/planner/tables/test_self_reference.py \
	tests/planner/engine/spark/test_engine.py tests/planner/engine/spark/test_spark_tables.py tests/planner/engine/spark/test_schemas.py \
	tests/planner/engine/spark/test_interrupted.py tests/planner/engine/spark/connect/test_reattach.py \
	tests/planner/engine/formats tests/planner/session/test_table_formats.py tests/planner/apply/promotion/test_view_switch.py \
	tests/planner/apply/test_old_versions_by_format.py tests/planner/apply/test_unit_tests.py tests/planner/cli/verbs/test_run_unchanged.py \
	tests/planner/dbt/test_real_formats.py tests/planner/dbt/test_real_snapshots.py tests/planner/dbt/test_real_databricks_rows.py
READY := $(VENV)/.ready
ARCHIVE := $(VENV)/.spark/.made
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-cache-dir --quiet --quiet
ACTIONLINT := v1.7.12
KUSTOMIZE := v5.7.1
SELDOM := '/(tests|pip|mypy|mypyc|githubkit.*)/'  # of what is installed: compiled when it is imported

# A registry that hiccups is asked again, for minutes.
export PIP_RETRIES ?= 10
export UV_HTTP_RETRIES ?= 10
unexport PYTHONDONTWRITEBYTECODE  # each process of the tests would compile what the one before it compiled

# Setting up says each step in one line, and how many packages an environment got.
define create-venv
@echo "Creating $(@D) with Python $$($(PYTHON) -c 'import platform; print(platform.python_version())')"
@$(PYTHON) -m venv $(@D)
endef
define create-pinned-venv
$(create-venv)
@echo "Installing the packages of $(filter %.txt,$^)"
@$(@D)/bin/pip install --disable-pip-version-check --quiet --requirement $(filter %.txt,$^)
endef
count-packages = @echo "Installed $$(ls -d $(@D)/lib/python3*/site-packages/*.dist-info | wc -l) packages in $(@D)"

.PHONY: docs docs-serve pictures vscode
.PHONY: help demo test test-matrix lint hooks types unit prove prove-lakehouse format lock clean coverage workflows dist release-check
.PHONY: bench bench-plan bench-impact bench-diff bench-quickstart bench-apply bench-webhooks bench-bot bench-load bench-checkout bench-state bench-peer bench-peer-apply bench-release bench-editor bench-pages bench-witness

help:
	@echo "make demo    a pull request from plan to prod, on this machine (a few minutes)"
	@echo "make test    style, types and tests"
	@echo "make test-matrix   some tests on each Python of this machine and each Spark that is supported (an hour, once)"
	@echo "make docs    the documentation site, in build/site (make docs-serve shows it while you write)"
	@echo "make pictures   the documentation's pictures, from a running demo"
	@echo "make vscode   the extension for VS Code, checked and packaged, in editors/vscode/build (needs Node 20)"
	@echo "make prove   what the rules promise, run on Spark: 2,000 random edits and the case book"
	@echo "make prove-lakehouse   every model kind, and runs that are killed, on each table format (fetches its jars once)"
	@echo "make coverage   the tests, and which lines none of them runs"
	@echo "make workflows   check GitHub's workflows, the Action, the Dockerfile, Kubernetes' manifests and the alerts (needs Go)"
	@echo "make dist   build the wheels and sdists, and try them in an empty environment (a few minutes)"
	@echo "make release-check TAG=v1.2.3   what can be tried of a release, in a clone at that tag"
	@echo "make bench   all that follows, as ratios (an hour)"
	@echo "make bench-plan   what a plan of 100, 1,000 and 5,000 models takes, cold and warm"
	@echo "make bench-impact   how much plans recompute, against the least that is sound"
	@echo "make bench-diff   what comparing two tables takes, against a join of all rows, at five densities"
	@echo "make bench-webhooks   how many webhooks the service stores for good: latency, rate, CPU each"
	@echo "make bench-bot   how long a pull request waits for its plan, its environment and prod, and where the time sits"
	@echo "make bench-load   twenty pull requests at once, an hour of 100 repositories, and a bad night (three hours; not part of make bench)"
	@echo "make bench-checkout   how long the files of a commit of 5,000 files take, anew and by difference"
	@echo "make bench-state   how much the state grows with a promotion"
	@echo "make bench-quickstart   what the quickstart's plans take, against a hand-written Spark script"
	@echo "make bench-pages   what the first pages of 'mergeplan ui' take, over 1,000 and 5,000 models (not part of make bench)"
	@echo "make bench-editor   what a keystroke takes in an editor, over 1,000 and 5,000 models (not part of make bench)"
	@echo "make bench-peer   plans of SQLMesh beside ours (installs it into .venv-peer; not part of make bench)"
	@echo "make bench-peer-apply   applies of SQLMesh beside ours, on Spark (the same)"
	@echo "make bench-release   some of them beside those of the last release"
	@echo "make bench-witness   what Spark's analyzer says of kept models, and what asking it takes (not part of make bench)"
	@echo "make bench-apply   what applying and promoting cost, against hand-written Spark"
	@echo "make clean   remove what the others made"

demo: $(READY)
	@$(BIN)/mergeplan demo $(DEMO)

test: lint
	@$(MAKE) --no-print-directory --jobs=2 types unit

test-matrix:  # MATRIX="3.13 lowest" runs one of its environments
	@$(PYTHON) -m tests.matrix $(MATRIX)

lint: $(READY) hooks
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check --quiet

hooks:  # commit messages are checked, unless this clone has hooks of its own
	@git config core.hooksPath >/dev/null 2>&1 || git config core.hooksPath .githooks 2>/dev/null || true

types: $(READY)
	@$(BIN)/mypy

# The first run compiles the tests once, beside the types, and not once in each worker.
unit: $(READY) $(ARCHIVE)
	@[ -d tests/planner/__pycache__ ] || $(BIN)/pytest --collect-only -qq -m "not prove" $(TESTS) >/dev/null || true
	@$(BIN)/pytest -n 4 --dist worksteal --timeout 900 -m "not prove" $(TESTS)

# SHARD=2/8 is the second of eight parts.
prove: $(READY) $(ARCHIVE) $(PROOFS:%=%/.ready) $(VENV)/.group-docs  # what takes minutes and a Spark of its own, and many more random cases than `make test` runs
	@MERGEPLAN_CASES=2000 MERGEPLAN_SEQUENCES=500 MERGEPLAN_KILLS=220 MERGEPLAN_LIVES=200 MERGEPLAN_PAYLOADS=1000 MERGEPLAN_SOAK=1000 \
		MERGEPLAN_METASTORE=1 MERGEPLAN_SHARD=$(SHARD) $(BIN)/pytest -n 2 --dist worksteal -m "prove or sampled" $(TESTS)

# pyspark is that of our own environment, as links of its files: the isolated child follows no link out of a library.
$(DBT)/.ready: $(READY) tests/planner/dbt/requirements.txt
	$(create-pinned-venv)
	@$(BIN)/python -c 'import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parents[1])' \
		| while read -r libraries; do for name in pyspark py4j; do \
			rm -rf $(DBT)/lib/python3*/site-packages/$$name; \
			cp -al "$$libraries/$$name" $(DBT)/lib/python3*/site-packages/; done; done
	$(count-packages)
	@touch $@

# Other dbts and that of Databricks, which compile alone: they need no pyspark. What runs the latter lends it ours.
.venv-dbt-%/.ready: tests/planner/dbt/requirements-%.txt
	$(create-pinned-venv)
	$(count-packages)
	@touch $@

# pip cannot leave a dependency out, and uv can.
.venv-dbt-1.12/.ready: tests/planner/dbt/requirements-1.12.txt tests/planner/dbt/left-out.txt
	$(create-venv)
	@$(@D)/bin/pip install --disable-pip-version-check --quiet uv
	@echo "Installing the packages of $<"
	@VIRTUAL_ENV=$(@D) $(@D)/bin/uv pip install --quiet --override tests/planner/dbt/left-out.txt --requirement $<
	$(count-packages)
	@touch $@

# Programs of others that read what `mergeplan docs --format dbt` writes.
$(CONSUMERS)/.ready: tests/planner/exports/requirements.txt
	$(create-pinned-venv)
	$(count-packages)
	@touch $@

# An Airflow that runs mergeplan: as on a worker, Spark is in the Python of the command alone.
$(AIRFLOW)/.ready: $(READY) tests/airflow/requirements.txt
	$(create-pinned-venv)
	$(count-packages)
	@echo "$(CURDIR)" > $$(echo $(AIRFLOW)/lib/python3*/site-packages)/mergeplan.pth
	@touch $@

# Dagster and what mergeplan.dagster imports; mergeplan itself runs in our own environment, as a process.
$(DAGSTER)/.ready: pyproject.toml tests/dagster/requirements.txt
	$(create-pinned-venv)
	@$(DAGSTER)/bin/pip install --disable-pip-version-check --quiet --no-deps --editable .
	$(count-packages)
	@touch $@

prove-lakehouse: $(READY) $(ARCHIVE) $(DBT)/.ready .venv-dbt-databricks/.ready  # a process has one Spark, and a Spark one format
	@for format in $${FORMATS:-$$($(BIN)/python -c "from mergeplan.planner.model.table_format import TABLE_FORMATS; print(*TABLE_FORMATS)")}; do \
		MERGEPLAN_TABLE_FORMAT=$$format MERGEPLAN_KILLS=$${MERGEPLAN_KILLS:-6} $(BIN)/pytest $(LAKEHOUSE) || exit 1; \
	done

bench: bench-plan bench-impact bench-diff bench-quickstart bench-apply bench-webhooks bench-bot bench-checkout bench-state

bench-plan: $(READY)
	@$(BIN)/python -m benchmarks.plan_command
	@$(BIN)/python benchmarks/plan_time.py

bench-pages: $(READY)
	@$(BIN)/python -m benchmarks.first_page

bench-editor: $(READY)
	@$(BIN)/python -m benchmarks.editor

bench-impact: $(READY)
	@$(BIN)/python -m benchmarks.impact

bench-diff: $(READY)
	@$(BIN)/python -m benchmarks.table_diff

bench-peer: $(READY) $(PEER)/.ready
	@$(BIN)/python -m benchmarks.peer $(PEER)/bin/sqlmesh

bench-peer-apply: $(READY) $(PEER)/.ready
	@$(BIN)/python -m benchmarks.peer_apply $(PEER)/bin/sqlmesh

$(PEER)/.ready: $(READY)
	$(create-venv)
	@echo "Installing sqlmesh, and the pyspark that is here"
	@$(PEER)/bin/pip install --disable-pip-version-check --quiet sqlmesh "$$($(BIN)/pip freeze | grep '^pyspark==')"
	$(count-packages)
	@touch $@

bench-quickstart: $(READY)
	@$(BIN)/python -m benchmarks.quickstart

bench-witness: $(READY)
	@$(BIN)/python -m benchmarks.witness

bench-apply: $(READY)
	@$(BIN)/python -m benchmarks.apply

bench-webhooks: $(READY)
	@$(BIN)/python -m benchmarks.webhooks

bench-bot: $(READY)
	@$(BIN)/python -m benchmarks.bot_pace

bench-load: $(READY)
	@$(BIN)/python -m benchmarks.bot_load burst
	@$(BIN)/python -m benchmarks.bot_load hour
	@$(BIN)/python -m benchmarks.bot_load hour --postgresql --services 2
	@$(BIN)/python -m benchmarks.bot_load night --postgresql --services 2

bench-checkout: $(READY)
	@$(BIN)/python -m benchmarks.checkout

bench-state: $(READY)
	@$(BIN)/python -m benchmarks.state_growth

# The tests of `make test` alone: with the proofs it takes hours.
coverage: $(READY) $(ARCHIVE) $(VENV)/.group-coverage
	@$(BIN)/pytest -n 4 --dist worksteal -m "not prove" --cov --cov-report=term:skip-covered --cov-report=xml $(TESTS)

# Workflows, the Action, the Dockerfile, what kustomize makes of the manifests, and the alerts where there is a promtool (Debian's package
# prometheus). actionlint and kustomize are Go programs, whose sums Go checks; actionlint's package on PyPI holds no program and would fetch one.
workflows: $(VENV)/.group-workflows $(BIN)/actionlint-$(ACTIONLINT) $(BIN)/kustomize-$(KUSTOMIZE)
	@$(BIN)/actionlint-$(ACTIONLINT) .github/workflows/*.yml docs/workflows/*.yml
	@$(BIN)/hadolint Dockerfile
	@$(BIN)/zizmor --offline --quiet --persona=pedantic --strict-collection .github action.yml docs/workflows/*.yml
	@PATH="$(CURDIR)/$(BIN):$$PATH" KUSTOMIZE=kustomize-$(KUSTOMIZE) $(BIN)/pytest --quiet tests/test_deploy.py tests/bot/test_metrics.py

$(BIN)/actionlint-$(ACTIONLINT): $(READY)
	@GOBIN="$(CURDIR)/$(BIN)" go install github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT)
	@mv $(BIN)/actionlint $@

$(BIN)/kustomize-$(KUSTOMIZE): $(READY)
	@GOBIN="$(CURDIR)/$(BIN)" go install sigs.k8s.io/kustomize/kustomize/v5@$(KUSTOMIZE)
	@mv $(BIN)/kustomize $@

dist: $(READY) $(VENV)/.group-release
	@$(BIN)/python -m release.dist $(DIST)

release-check: $(READY) $(VENV)/.group-release
	@PYTHON=$(BIN)/python release/rehearse $(TAG)

$(VENV)/.group-%: $(READY)  # what only some targets need
	@echo "Installing the packages of the group $* into $(VENV)"
	@$(PIP) install --no-compile --constraint requirements.lock --group $*
	@touch $@

bench-release: $(READY)
	@$(BIN)/python -m benchmarks.last_release $(PYTHON)

format: $(READY)
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

docs: $(VENV)/.group-docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site is in build/site."

docs-serve: $(VENV)/.group-docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

pictures: $(READY)  # needs chromium (or CHROMIUM) and a font with emoji
	@$(BIN)/python -m tests.pictures

vscode:
	@cd editors/vscode && npm ci --ignore-scripts --no-audit --no-fund --silent
	@cd editors/vscode && npm run --silent check && npm run --silent test && npm run --silent package

lock: $(READY)  # the newest of everything that fits pyproject.toml
	@$(PIP) install --upgrade --upgrade-strategy eager --group dev --group docs --group release --group workflows --group coverage --editable ./sandbox --editable ".[demo]"
	@{ $(BIN)/python -m pip freeze --exclude-editable; grep '^pyspark-client==' requirements.lock; } | LC_ALL=C sort -f -t= -k1,1 -o requirements.lock

# pyspark comes as source, 450 MB: its wheel is not compressed, and it is installed first, so that a line says what takes
# long. Modules are compiled on all cores, and only those that are imported often.
$(READY): pyproject.toml sandbox/pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "mergeplan needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 1; }
	$(create-venv)
	@printf '[bdist_wheel]\ncompression = stored\n' > $(VENV)/build.cfg
	@$(PIP) install --no-compile --upgrade "pip>=25.1"
	@echo "Installing $$(grep '^pyspark==' requirements.lock) (450 MB, a minute or two, once)"
	@DIST_EXTRA_CONFIG="$(CURDIR)/$(VENV)/build.cfg" \
		$(PIP) install --no-compile --no-deps --constraint requirements.lock pyspark
	@echo "Installing mergeplan's other packages, and those of its tests (half a minute, once)"
	@$(PIP) install --no-compile --constraint requirements.lock --group dev --editable ./sandbox --editable ".[demo]"
	$(count-packages)
	@echo "Compiling them (once)"
	@$(BIN)/python -W ignore -m compileall -qq -j 0 -x $(SELDOM) $(VENV)/lib || true
	@touch $@

# `make test` starts many Sparks. Each has half the work with the archive, and to make it costs what eight of them save.
$(ARCHIVE): $(READY)
	@echo "Building Spark's class archive for the tests (a minute, once)"
	@mkdir -p -m 700 $(@D)
	@MERGEPLAN_SPARK_ARCHIVE="$(CURDIR)/$(@D)" \
		$(BIN)/python -P -s -m mergeplan.planner.engine.spark.process.archive_maker || true  # without it they are slower
	@touch $@

clean:
	@rm -rf $(VENV) .venv-matrix $(PEER) $(PROOFS) .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info sandbox/build sandbox/*.egg-info
	@cd editors/vscode && rm -rf node_modules build dist LICENSE
