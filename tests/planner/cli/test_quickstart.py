"""The quickstart, followed line by line: what it shows is what is seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.planner.cli.conftest import CommandLine, Ran, clear_tables

MODEL = "sqlmesh_example.incremental_model"
DEV_MODEL = "sqlmesh_example__dev.incremental_model"
PROD_ROWS = """
   id  item_id  event_date
0   1        2  2020-01-01
1   2        1  2020-01-01
2   3        3  2020-01-03
3   4        1  2020-01-04
4   5        1  2020-01-05
5   6        1  2020-01-06
6   7        1  2020-01-07
"""
NEW_ROWS = """
   id  item_id  new_column  event_date
0   1        2           z  2020-01-01
1   2        1           z  2020-01-01
2   3        3           z  2020-01-03
3   4        1           z  2020-01-04
4   5        1           z  2020-01-05
5   6        1           z  2020-01-06
6   7        1           z  2020-01-07
"""


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory, shared_engine: SparkEngine) -> Iterator[dict[str, Ran]]:
    """What the terminal shows at each of the quickstart's commands, in their order."""
    mergeplan = CommandLine(tmp_path_factory.mktemp("sqlmesh-example"), shared_engine)
    rows = f"select * from {MODEL} order by id"
    with clear_tables(shared_engine):
        shown = {
            "init": mergeplan("init"),
            "explain": mergeplan("plan", "--explain", "--skip-tests"),
            "environments before": mergeplan("environments"),
            "plan": mergeplan("plan", answer="y\n"),
            "rows": mergeplan("fetchdf", rows),
            "plan again": mergeplan("plan"),
        }
        mergeplan.edit("models/incremental_model.sql", "  item_id,\n", "  item_id,\n  'z' AS new_column,\n")
        shown |= {
            "plan dev": mergeplan("plan", "dev", answer="y\n"),
            "dev rows": mergeplan("fetchdf", rows.replace(MODEL, DEV_MODEL)),
            "prod rows": mergeplan("fetchdf", rows),
        }
        jobs = shared_engine.jobs()
        shown["update prod"] = mergeplan("plan", "--skip-tests", answer="y\n")
        shown["update prod"] = replace(shown["update prod"], jobs=shared_engine.jobs() - jobs)
        shown["new rows"] = mergeplan("fetchdf", rows)
        shown["end"] = mergeplan("plan")
    yield shown


def timeless(text: str) -> str:
    """The text without yesterday's date, durations and estimates."""
    yesterday = f"{datetime.now(UTC) - timedelta(days=1):%Y-%m-%d}"
    text = re.sub(r"  ~.*|Estimated: .*\n", "", text)
    text = re.sub(r"\d+\.\d\ds|\d:\d\d:\d\d", "TIME", text.replace(yesterday, "YESTERDAY"))
    return re.sub(r" +TIME", " TIME", re.sub(r"in \d+\.\d seconds", "in TIME", _without_length(text)))


def _without_length(text: str) -> str:
    return re.sub(r"(Done in|rows,) \d+ (?:s|min)", r"\1 TIME", text)


@pytest.mark.prove
def test_every_command_succeeds_and_says_on_standard_error_only_what_takes_time(terminal: dict[str, Ran]) -> None:
    told = {name: (ran.code, ran.err) for name, ran in terminal.items()}

    # the edited model has a column more: what reads it may come out otherwise, so its test runs again
    tests = dict.fromkeys(("plan", "plan dev"), (0, "Running 1 unit test...\n"))
    assert told == dict.fromkeys(told, (0, "")) | tests


def test_init_writes_the_example_and_says_what_is_next(terminal: dict[str, Ran]) -> None:
    assert "  models/incremental_model.sql\n" in terminal["init"].out
    assert "Your mergeplan project is ready!" in terminal["init"].out
    assert "- Run command in CLI: mergeplan plan" in terminal["init"].out


def test_the_first_plan_runs_the_tests_and_shows_what_it_adds_and_computes(terminal: dict[str, Ran]) -> None:
    assert timeless(terminal["plan"].out).startswith("""\
======================================================================
1 test passed in TIME.
----------------------------------------------------------------------

`prod` environment will be initialized

Models:
└── Added:
    ├── sqlmesh_example.full_model
    ├── sqlmesh_example.incremental_model
    └── sqlmesh_example.seed_model
Models needing backfill:
├── sqlmesh_example.full_model: [full refresh]
├── sqlmesh_example.incremental_model: [2020-01-01 - YESTERDAY]
└── sqlmesh_example.seed_model: [full refresh]
Apply - Backfill Tables [y/n]: """)


def test_applying_it_shows_each_stage_and_each_batch(terminal: dict[str, Ran]) -> None:
    _, _, applied = timeless(terminal["plan"].out).partition("[y/n]: ")

    assert (
        applied
        == """
Updating physical layer ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 100.0% • 3/3 • TIME

✔ Physical layer updated

[1/1] sqlmesh_example.seed_model          [insert seed file] TIME
[1/1] sqlmesh_example.incremental_model   [insert 2020-01-01 - YESTERDAY] TIME
[1/1] sqlmesh_example.full_model          [full refresh, audits ✔1] TIME
Executing model batches ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 100.0% • 3/3 • TIME

✔ Model batches executed

Updating virtual layer  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 100.0% • 3/3 • TIME

✔ Virtual layer updated

Computed 3 models in 3 batches: 17 rows, TIME.
"""
    )


def test_prod_has_the_seven_rows(terminal: dict[str, Ran]) -> None:
    assert terminal["rows"].out == PROD_ROWS.lstrip("\n")


def test_a_second_plan_finds_no_changes(terminal: dict[str, Ran]) -> None:
    assert terminal["plan again"].out.endswith("\nNo changes to plan: the project matches the `prod` environment.\n")
    assert terminal["end"].out.endswith("\nNo changes to plan: the project matches the `prod` environment.\n")


def test_the_new_column_is_non_breaking_and_shown_with_its_diff(terminal: dict[str, Ran]) -> None:
    plan, _, _ = timeless(terminal["plan dev"].out).partition("[y/n]: ")

    assert (
        plan.partition("\n\n")[2]
        == """\
New environment `dev` will be created from `prod`


Differences from the `prod` environment:

Models:
├── Directly Modified:
│   └── sqlmesh_example__dev.incremental_model
└── Indirectly Modified:
    └── sqlmesh_example__dev.full_model

--- a/models/incremental_model.sql
+++ b/models/incremental_model.sql
@@ -11,6 +11,7 @@
 SELECT
   id,
   item_id,
+  'z' AS new_column,
   event_date
 FROM sqlmesh_example.seed_model
 WHERE

Directly Modified: sqlmesh_example__dev.incremental_model (Non-breaking)
├── Only adds `new_column`; the rows and the other columns stay as they are.
└── Indirectly Modified Children:
    └── sqlmesh_example__dev.full_model (Indirect Non-breaking)
        └── Reads only `id` and `item_id` of `sqlmesh_example.incremental_model`, which adds `new_column`.
Checked by Spark: 2 models keep rows.
Models needing backfill:
└── sqlmesh_example__dev.incremental_model: [2020-01-01 - YESTERDAY]
Apply - Backfill Tables """
    )


def test_the_column_is_in_dev_and_not_in_prod(terminal: dict[str, Ran]) -> None:
    assert terminal["dev rows"].out == NEW_ROWS.lstrip("\n")
    assert terminal["prod rows"].out == PROD_ROWS.lstrip("\n")


def test_prod_gets_it_by_a_virtual_update_that_executes_nothing(terminal: dict[str, Ran]) -> None:
    _, _, applied = timeless(terminal["update prod"].out).partition("Apply - Virtual Update [y/n]: ")

    assert terminal["update prod"].jobs == 0
    assert (
        applied
        == """
SKIP: No physical layer updates to perform

SKIP: No model batches to execute

Updating virtual layer  ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 100.0% • 1/1 • TIME

✔ Virtual layer updated

Done in TIME: no table was computed.
"""
    )
    assert terminal["new rows"].out == NEW_ROWS.lstrip("\n")


@pytest.mark.prove
def test_explain_shows_three_sections_and_writes_nothing(terminal: dict[str, Ran]) -> None:
    _, _, explained = terminal["explain"].out.partition("Explained plan\n")

    assert re.sub("__[0-9a-f]{12}", "__VERSION", explained).splitlines()[:4] == [
        "├── Validate SQL and create physical layer tables and views if they do not exist",
        "│   ├── sqlmesh_example.seed_model -> mergeplan__sqlmesh_example.sqlmesh_example__seed_model__VERSION",
        "│   │   ├── Dry run model query without inserting results",
        "│   │   └── Create table if it doesn't exist",
    ]
    assert [line[4:] for line in explained.splitlines() if line[0] in "├└"] == [
        "Validate SQL and create physical layer tables and views if they do not exist",
        "Backfill models by running their queries and run audits",
        "Update the virtual layer for environment 'prod'",
    ]
    assert terminal["environments before"].out == "There is no environment yet. `mergeplan plan` makes prod.\n"
