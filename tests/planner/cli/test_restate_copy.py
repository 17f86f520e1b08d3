"""Copies of rows on Spark, restated or laid out anew: another environment has them, prod its own until the merge."""

from __future__ import annotations

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.planner.cli.conftest import CommandLine
from tests.planner.cli.test_restate import AT, DAILY, FILES, Shop, batches, mergeplan, raw, restate  # noqa: F401 - a fixture
from tests.planner.shop import rows

COPY = "--restate-copy=default.raw=2026-01-02..2026-01-02"
BY_DAY = "SELECT day(day), count(*) FROM {}.daily GROUP BY 1 ORDER BY 1"


def test_a_copy_is_computed_looked_at_and_promoted_for_nothing(
    mergeplan: CommandLine,  # noqa: F811
    engine: SparkEngine,
) -> None:
    copied = restate(mergeplan, "dev", COPY, "--who", "ann")

    assert copied.code == 0, copied.out + copied.err
    assert ("shop.daily", ["2026-01-02", "2026-01-03"]) in batches(copied)
    assert rows(engine, BY_DAY.format("shop__dev")) == [(1, 1), (2, 2), (3, 1)]
    assert rows(engine, BY_DAY.format("shop")) == [(1, 1), (2, 1), (3, 1)]
    assert (rows(engine, "SELECT n FROM shop__dev.total"), rows(engine, "SELECT n FROM shop.total")) == ([(4,)], [(3,)])
    merged = restate(mergeplan, "--overrides-from", "dev")
    assert (batches(merged), merged.result["promotion"]["spark_jobs"]) == ([], 0)
    assert rows(engine, BY_DAY.format("shop")) == [(1, 1), (2, 2), (3, 1)]
    assert rows(engine, "SELECT n FROM shop.total") == [(4,)]
    assert restate(mergeplan, "--overrides-from", "dev").result["plan"]["models"] == []


@pytest.mark.prove
def test_a_later_plan_keeps_it_until_the_model_is_edited(mergeplan: CommandLine, engine: SparkEngine) -> None:  # noqa: F811
    restate(mergeplan, "dev", COPY)
    mergeplan.edit("models/total.sql", "count(*) AS n", "count(*) + 1 AS n")
    later = restate(mergeplan, "dev")
    assert (batches(later), rows(engine, "SELECT n FROM shop__dev.total")) == (
        [("shop.total", batches(later)[0][1])],
        [(5,)],
    )

    mergeplan.edit("models/daily.sql", "SELECT id, day", "SELECT id + 1 AS id, day")
    edited = restate(mergeplan, "dev")
    (ended,) = edited.result["plan"]["unused_overrides"]
    assert (ended["model"], ended["ended_by"]) == ("shop.daily", "edit")
    assert ended["restates"] == "2026-01-02T00:00:00+00:00..2026-01-03T00:00:00+00:00"


@pytest.mark.prove
@pytest.mark.parametrize("day", ["2026-01-01", "2026-01-05"])
def test_late_rows_that_prod_took_in_meanwhile_are_in_the_copy_when_it_is_merged(
    mergeplan: CommandLine,  # noqa: F811
    engine: SparkEngine,
    day: str,
) -> None:
    """A merge days later copies the days that prod has filled since, and those to which prod has looked back."""
    mergeplan.edit("models/daily.sql", "batch_size 7", "batch_size 7, lookback 1")
    assert mergeplan("plan", "--auto-apply", *AT).code == 0
    restate(mergeplan, "dev", f"--restate-copy=shop.daily={day}..{day}")
    raw(engine, "01", "02", "03", "05", "06")
    assert mergeplan("run", "--execution-time", "2026-01-07 05:00:00").code == 0
    before = rows(engine, BY_DAY.format("shop"))

    arguments = ("--overrides-from", "dev", "--auto-apply", "--execution-time", "2026-01-07 05:00:00")
    assert mergeplan("plan", *arguments).code == 0

    late = [row for row in before if row[0] == 5]
    assert late == [(5, 1)]
    assert [row for row in rows(engine, BY_DAY.format("shop")) if row[0] == 5] == late


def test_its_days_are_computed_again_in_tables_that_were_built_before_the_merge(
    mergeplan: CommandLine,  # noqa: F811
    engine: SparkEngine,
) -> None:
    """Another pull request has some, with a reader that prod lacks, and a revert shows prod's own again."""
    edit = "SELECT id, day", "SELECT id + 1 AS id, day"
    mergeplan.edit("models/daily.sql", *edit)
    reader = "models/apart.sql", DAILY.replace("shop.daily", "shop.apart").replace("id, day", "id - 1 AS id, day")
    mergeplan.write(*reader)
    restate(mergeplan, "other")
    mergeplan.edit("models/daily.sql", *reversed(edit))
    (mergeplan.root / reader[0]).unlink()
    raw(engine, "01", "02", "02", "02", "03")
    restate(mergeplan, "dev", COPY)
    restate(mergeplan, "--overrides-from", "dev")

    mergeplan.write(*reader)
    for old, new in (edit, reversed(edit)):
        mergeplan.edit("models/daily.sql", old, new)
        restate(mergeplan)
        assert rows(engine, BY_DAY.format("shop"))[1] == (2, 3)
        assert rows(engine, BY_DAY.format("shop").replace("daily", "apart"))[1] == (2, 3)


@pytest.mark.prove
@pytest.mark.parametrize(
    "reset",
    ["--categorize=shop.daily=reset", "--restate-copy=shop.dai*=reset", "--restate-copy=default.raw=reset"],
)
def test_it_is_taken_back_by_reset(mergeplan: CommandLine, engine: SparkEngine, reset: str) -> None:  # noqa: F811
    """By the selector too, or by the table whose readers it restated."""
    restate(mergeplan, "dev", COPY)
    back = restate(mergeplan, "dev", reset)

    assert back.result["plan"]["views"]["dropped"] == ["shop__dev.daily", "shop__dev.total"]  # prod's are shown again
    assert rows(engine, BY_DAY.format("shop")) == [(1, 1), (2, 1), (3, 1)]
    assert restate(mergeplan, "dev").result["plan"]["models"] == []


def test_a_selector_of_no_model_is_a_warning(mergeplan: CommandLine) -> None:  # noqa: F811
    """A plan that a typing error lets fail would block a pull request."""
    planned = mergeplan("plan", "dev", "--restate-copy=shop.nothing", "--no-prompts", "--output", "json", *AT)

    (warning,) = planned.result["plan"]["warnings"]
    assert warning["message"].startswith("Nothing is restated in a copy: `shop.nothing` selects no model.")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("prod", COPY), "`--restate-copy` is for other environments: prod's own tables are restated."),
        (("dev", "--restate-copy=shop.daily=monday"), "`shop.daily=monday` names no days."),
        (("dev", "--restate-copy=shop.daily=2026-01-03..2026-01-02"), "The end `2026-01-02` does not come after"),
        (("dev", COPY, "-r", "shop.daily"), "`--restate-model` does not go with `--restate-copy`"),
    ],
)
def test_what_cannot_be_asked_is_said(mergeplan: CommandLine, arguments: tuple[str, ...], said: str) -> None:  # noqa: F811
    refused = mergeplan("plan", *arguments, "--no-prompts", *AT)

    assert refused.code == 1
    assert said in refused.out + refused.err


@pytest.mark.prove
@pytest.mark.parametrize(
    "kind",
    [
        "INCREMENTAL_UNMANAGED",
        "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)",
        "SCD_TYPE_2_BY_COLUMN (unique_key id, columns [day], invalidate_hard_deletes true)",
    ],
)
def test_another_layout_keeps_what_prod_recorded_while_the_pull_request_was_open(
    shop: Shop, engine: SparkEngine, kind: str
) -> None:
    """The source no longer has those rows when the merge comes."""
    text = f"MODEL (name shop.kept, kind {kind});\nSELECT id, day FROM default.raw"
    raw(engine, "01")
    opened = shop(**{**FILES, "daily": "", "total": "", "kept": text})
    assert opened("plan", "--auto-apply", *AT).code == 0
    opened.edit("models/kept.sql", f"kind {kind}", f"kind {kind}, storage_format orc")
    assert opened("plan", "dev", "--auto-apply", *AT).code == 0
    for day in ("07", "08"):
        raw(engine, *["02"] * (int(day) - 5))
        assert opened("run", "--execution-time", f"2026-01-{day} 05:00:00").code == 0
    raw(engine, "02")
    before = rows(engine, "SELECT * FROM shop.kept ORDER BY ALL")
    if "UNIQUE" not in kind.partition(" ")[0]:
        assert opened("run", "dev", "--execution-time", "2026-01-08 05:30:00").code == 0  # which fills no history

    assert opened("plan", "--auto-apply", "--execution-time", "2026-01-08 06:00:00").code == 0

    assert rows(engine, "SELECT * FROM shop.kept ORDER BY ALL") == before
    assert opened("plan", "--output", "json", "--execution-time", "2026-01-08 06:00:00").result["plan"]["models"] == []
