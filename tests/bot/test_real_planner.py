"""From pull request to prod with the planner itself: Spark builds, the bot shows, the merge promotes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mergeplan.bot.records import PullState
from mergeplan.bot.results import is_free
from mergeplan.planner.project import __file__ as project_file
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.settings import SessionSettings
from tests.bot.conftest import SHOP, Bench

EXAMPLE = Path(project_file).parent / "example"
MODEL = "models/incremental_model.sql"
BARE = {
    "config.yaml": (EXAMPLE / "config.yaml").read_text(),
    "external_models.yaml": "- name: shop.items\n  columns: {id: int}\n",
}
COLUMN = "\n  'z' AS new_column,"
NARROWER = "id <= 5 AND event_date BETWEEN"


def rows(home: Path, sql: str) -> list[list[object]]:
    """What a query of the project's own Spark returns."""
    command = [
        sys.executable,
        "-m",
        "mergeplan.planner.cli.main",
        "fetchdf",
        sql,
        "--output",
        "json",
        "--project",
        str(EXAMPLE),
    ]
    environment = {**os.environ, "MERGEPLAN_HOME": str(home)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=True)
    table_rows: list[list[object]] = json.loads(done.stdout)["rows"]
    return table_rows


def example(make_bench: Callable[..., Bench]) -> Bench:
    """The example project in prod, with the planner itself and a warm Spark."""
    files = {path.relative_to(EXAMPLE).as_posix(): path.read_text() for path in EXAMPLE.rglob("*") if path.is_file()}
    bench = make_bench(project=files, planner_command=(), warm=True, patience=900.0)
    assert bench.context.inbox.prods.get(SHOP).revision == 1
    return bench


@pytest.mark.prove
def test_a_pull_request_is_planned_merged_and_promoted(make_bench: Callable[..., Bench]) -> None:
    """Behaviours 9, 40, 47: what did not change is shared with prod, and a merge executes nothing over data."""
    bench = example(make_bench)

    added = bench.open({MODEL: bench.github.read(SHOP, MODEL).replace("item_id,", f"item_id,{COLUMN}")})
    bench.idle()
    assert "1 non-breaking, 1 indirect non-breaking" in bench.plan(added)
    assert "shared with `prod`" in bench.plan(added)
    assert "Checked by Spark: 2 models keep rows." in bench.plan(added)
    assert_merged_for_nothing(bench, added, revision=2)
    assert rows(bench.home, "SELECT DISTINCT new_column FROM sqlmesh_example.incremental_model") == [["z"]]


@pytest.mark.prove
def test_each_category_builds_what_it_must(make_bench: Callable[..., Bench]) -> None:
    """Behaviours 9, 32."""
    bench = example(make_bench)

    added = bench.open({MODEL: bench.github.read(SHOP, MODEL).replace("item_id,", f"item_id,{COLUMN}")})
    bench.idle()
    bench.say(added, "/categorize breaking")
    assert "Downstream recomputed: `sqlmesh_example.full_model`" in bench.replies(added)[0]
    bench.say(added, "/categorize incremental_model non-breaking")
    assert "Downstream keeps its tables: `sqlmesh_example.full_model`" in bench.replies(added)[1]
    assert_merged_for_nothing(bench, added, revision=2)
    assert rows(bench.home, "SELECT DISTINCT new_column FROM sqlmesh_example.incremental_model") == [["z"]]


@pytest.mark.prove
def test_changed_rows_are_shown_and_asked_about_and_a_forward_only_branch_keeps_them(
    make_bench: Callable[..., Bench],
) -> None:
    """Behaviours 32, 40, 47: a second and a third pull request on what the first one left."""
    bench = example(make_bench)
    first = bench.open({MODEL: bench.github.read(SHOP, MODEL).replace("item_id,", f"item_id,{COLUMN}")})
    bench.idle()
    assert_merged_for_nothing(bench, first, revision=2)

    narrowed = bench.open({MODEL: bench.github.read(SHOP, MODEL).replace("event_date BETWEEN", NARROWER)}, "narrower")
    bench.idle()
    assert "replaces 2 tables of prod · rows differ in 2 models" in bench.plan(narrowed).splitlines()[1]
    changed = "sqlmesh_example.incremental_model"
    bench.say(narrowed, f"/diff {changed} --where id > 5\n/lineage {changed}.id")
    assert "2 gone" in bench.replies(narrowed)[0]
    assert "- `sqlmesh_example.full_model`: `" in bench.replies(narrowed)[0]
    bench.say(narrowed, "/categorize non-breaking")
    assert "Downstream keeps its tables: `sqlmesh_example.full_model`" in bench.replies(narrowed)[1]
    assert_merged_for_nothing(bench, narrowed, revision=3)
    assert rows(bench.home, "SELECT COUNT(*) FROM sqlmesh_example.incremental_model") == [[5]]
    assert_a_forward_only_branch_keeps_the_rows(bench)
    assert [schema for (schema,) in rows(bench.home, "SHOW SCHEMAS") if "__pr_" in str(schema)] == []


@pytest.mark.prove
@pytest.mark.parametrize("branch", ["column", "column-forward-only"])
def test_prod_goes_back_and_the_revert_that_is_opened_computes_nothing_and_moves_no_view(
    make_bench: Callable[..., Bench], branch: str
) -> None:
    """Behaviours 5, 40: then branch and prod agree, and the next pull request's plan is of its own change."""
    bench, before = example(make_bench), "SELECT * FROM sqlmesh_example.incremental_model ORDER BY id"
    text, shown = bench.github.read(SHOP, MODEL), rows(bench.home, before)
    number = bench.open({MODEL: text.replace("item_id,", f"item_id,{COLUMN}")}, branch)
    bench.idle()
    assert_merged_for_nothing(bench, number, revision=2)
    bench.say(number, "/rollback --dry-run", author="wim")
    assert "Prod is at revision 2 and would show revision 1 again" in bench.replies(number)[0]
    reply = bench.replies(number)[0].replace("<wbr>", "").replace("\\", "")
    assert "<br>→ <code>sqlmesh_example__incremental_model__" in reply
    bench.say(number, "/rollback", author="ann")
    assert "`ann` pointed prod back at the tables of revision 1." in bench.replies(number)[1]
    assert rows(bench.home, before) == shown

    revert = bench.record(number).rollback.reversal.number
    planned = bench.record(revert).outcome
    assert planned and planned.plan and (planned.plan.models, planned.plan.virtual) == ((), True)
    assert bench.checks(bench.head(revert))["plan"].title == "Nothing to do"
    bench.github.merge(SHOP, revert, author="ann")
    bench.idle()
    assert (bench.record(revert).state, bench.context.inbox.prods.get(SHOP).revision) == (PullState.PROMOTED, 3)
    assert (rows(bench.home, before), bench.github.read(SHOP, MODEL)) == (shown, text)
    after = bench.open({"models/more.sql": "MODEL (name sqlmesh_example.more, kind VIEW);\nSELECT 1 AS a\n"}, "more")
    bench.idle()
    outcome = bench.record(after).outcome
    assert outcome and outcome.plan and [model.name for model in outcome.plan.models] == ["sqlmesh_example.more"]


@pytest.mark.prove
def test_a_view_of_prod_that_was_dropped_by_hand_is_named_in_the_comment(make_bench: Callable[..., Bench]) -> None:
    """From the webhook to the comment: nobody asks for it, and the plan is as it would be."""
    bench = example(make_bench)
    with Session(SessionSettings(EXAMPLE, home=bench.home, state_project=SHOP)) as session:
        session.fetch("DROP VIEW sqlmesh_example.full_model")

    number = bench.open({MODEL: bench.github.read(SHOP, MODEL).replace("item_id,", f"item_id,{COLUMN}")})
    bench.idle()

    gone = "The view `sqlmesh_example.full_model` of `prod` is gone from the catalog."
    assert f"> [!WARNING]\n> {gone} `mergeplan run prod --refresh` restores it.\n" in bench.plan(number)
    assert bench.plan(number).splitlines()[1].startswith("### ✅ Ready to merge · replaces 1 table")


@pytest.mark.prove
def test_a_query_that_spark_would_not_parse_fails_the_plan_at_its_line(make_bench: Callable[..., Bench]) -> None:
    """Behaviours 29, 39: where the person wrote it, and nothing is made."""
    bench = make_bench(project=BARE, planner_command=(), patience=900.0)
    head = "MODEL (\n  name shop.copied,\n  kind VIEW\n);\n\n"
    number = bench.open({"models/copied.sql": f"{head}SELECT 1 AS a FROM FROM shop.items\n"})
    bench.idle()

    check = bench.github.checks(SHOP, bench.head(number))["mergeplan / plan"]
    (mark,) = check.annotations
    assert (check.conclusion, check.title) == ("failure", "The project does not load")
    assert (mark.path, mark.start_line, mark.annotation_level) == ("models/copied.sql", 6, "failure")
    assert "`FROM` cannot stand here." in mark.message
    assert "`models/copied.sql:6`" in bench.plan(number)
    assert bench.record(number).state is PullState.FAILED


@pytest.mark.prove
def test_a_broken_rule_of_the_linter_is_told_by_its_own_check_at_its_line(make_bench: Callable[..., Bench]) -> None:
    """Behaviour 39."""
    config = BARE["config.yaml"].replace("    - ambiguousorinvalidcolumn\n", "    - noselectstar\n")
    bench = make_bench(project={**BARE, "config.yaml": config}, planner_command=(), patience=900.0)
    number = bench.open({"models/star.sql": "MODEL (name shop.star, kind VIEW);\n\nSELECT *\nFROM shop.items\n"})
    bench.idle()

    lint = bench.github.checks(SHOP, bench.head(number))["mergeplan / lint"]
    assert (lint.conclusion, lint.title) == ("failure", "1 error")
    assert [(mark.path, mark.start_line) for mark in lint.annotations] == [("models/star.sql", 3)]
    assert bench.plan(number).splitlines()[1] == "### ❌ The project breaks rules of its linter"


def assert_a_forward_only_branch_keeps_the_rows(bench: Bench) -> None:
    """A branch of that name is planned with previews, and merges at no cost: old rows stay, without the new column."""
    edit = bench.github.read(SHOP, MODEL).replace("'z' AS new_column,", "'z' AS new_column, 'y' AS newer,")
    number = bench.open({MODEL: edit.replace("id <= 5 AND ", "")}, "newer-forward-only")
    bench.idle()
    assert "2 forward-only" in bench.plan(number)
    assert "(preview: holds some days only, and is never promoted)" in bench.plan(number)
    assert "This environment shows a preview of 2 models: in prod existing rows stay." in bench.plan(number)
    assert_merged_for_nothing(bench, number, revision=4)
    counts = "SELECT COUNT(*), COUNT(newer) FROM sqlmesh_example.incremental_model"
    assert rows(bench.home, counts) == [[5, 0]]


def assert_merged_for_nothing(bench: Bench, number: int, revision: int) -> None:
    """The merge promotes the pull request's own tables: Spark counted no job, and its environment is gone."""
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    record = bench.record(number)
    assert record.state is PullState.PROMOTED
    assert (
        record.promotion.outcome and record.promotion.outcome.promotion and is_free(record.promotion.outcome.promotion)
    )
    assert record.promotion.revision == revision
    assert "Nothing was computed: 0 Spark jobs." in bench.plan(number)
    assert not record.environment.exists


@pytest.mark.prove
def test_two_projects_of_one_repository_are_planned_and_promoted_apart(make_bench: Callable[..., Bench]) -> None:
    """One pull request of both: each computes its own tables once, and the merge none; then one goes back alone."""
    files = {path.relative_to(EXAMPLE).as_posix(): path.read_text() for path in EXAMPLE.rglob("*") if path.is_file()}
    both = {f"{folder}/{name}": text for folder in ("shop", "ads") for name, text in files.items()}
    bench = make_bench(project=both, project_path="shop,ads", planner_command=(), warm=True, patience=900.0)
    homes, pulls, prods = (
        (bench.home, bench.home.parent / "shop~ads"),
        bench.context.inbox.pulls,
        bench.context.inbox.prods,
    )
    keys, count = (SHOP, f"{SHOP}~ads"), "SELECT COUNT(*) FROM sqlmesh_example.incremental_model"
    text = bench.github.read(SHOP, f"ads/{MODEL}")

    number = bench.open(
        {
            f"shop/{MODEL}": text.replace("item_id,", f"item_id,{COLUMN}"),
            f"ads/{MODEL}": text.replace("event_date BETWEEN", NARROWER),
        }
    )
    bench.idle()
    bench.say(number, "/categorize breaking --project shop")
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    ends = [pulls.get(key, number) for key in keys]
    assert [(pull.state, prods.get(key).revision) for pull, key in zip(ends, keys, strict=True)] == [
        (PullState.PROMOTED, 2)
    ] * 2
    assert all(
        end.promotion.outcome and end.promotion.outcome.promotion and is_free(end.promotion.outcome.promotion)
        for end in ends
    )
    assert [rows(home, count) for home in homes] == [[[7]], [[5]]]
    bench.say(number, "/rollback --project ads", author="ann")
    assert [prods.get(key).revision for key in keys] == [2, 3]
    assert [rows(home, count) for home in homes] == [[[7]], [[7]]]
