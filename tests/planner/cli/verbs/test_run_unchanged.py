"""`run` on a real Spark: a FULL model is computed again when something that it reads was written, and only then."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.conftest import FORMAT
from tests.planner.cli.conftest import CommandLine, Ran
from tests.planner.cli.verbs.test_run import run_at
from tests.planner.shop import rows

Shop = Callable[..., CommandLine]
TOP = "MODEL (name shop.top, kind FULL);\nSELECT max(price) AS price FROM shop.items"
OVER = "MODEL (name shop.over, kind FULL);\nSELECT price + 1 AS price FROM shop.seen"
SEEN = "MODEL (name shop.seen, kind VIEW);\nSELECT price FROM shop.top"
NEVER = {
    "clock": "SELECT current_timestamp() AS at, price FROM shop.items",
    "dated": "SELECT @execution_ds AS at, price FROM shop.items",
    "chance": "SELECT rand() AS x FROM shop.items",
    "outside": "SELECT n FROM default.others",
    "beside": "SELECT n + 1 AS n FROM default.others",
}


def models(ran: Ran) -> dict[str, bool]:
    """Model -> whether it was left as it was, in a run."""
    assert ran.code == 0, ran.out + ran.err
    return {line["model"]: bool(line.get("unchanged")) for line in ran.lines if line["event"] == "batch"}


def restate(mergeplan: CommandLine, moment: str, model: str) -> Ran:
    at = ("--auto-apply", "--output", "json", "--execution-time", moment)
    return mergeplan("plan", "--restate-model", model, "--start", "2026-01-01", *at)


@pytest.fixture
def mergeplan(shop: Shop) -> CommandLine:
    opened = shop(shown="", apart="", top=TOP, seen=SEEN, over=OVER)
    assert opened("plan", "--auto-apply", "--execution-time", "2026-01-06 05:00:00").code == 0
    return opened


def test_a_full_model_of_which_nothing_was_written_is_not_computed(mergeplan: CommandLine, engine: SparkEngine) -> None:
    ran, again = run_at(mergeplan, "2026-01-07 05:00:00"), run_at(mergeplan, "2026-01-07 06:00:00")

    assert models(ran) == {"shop.daily": False, "shop.total": False, "shop.top": True, "shop.over": True}
    assert models(again) == {}
    assert rows(engine, "SELECT price FROM shop.over") == [(31,)]
    shown = mergeplan("run", "--execution-time", "2026-01-08 05:00:00").out
    assert "shop.top     [unchanged, like all its inputs]" in shown
    assert "Computed 2 models in 2 batches" in shown


@pytest.mark.prove
def test_a_restated_model_is_computed_though_nothing_changed(mergeplan: CommandLine, engine: SparkEngine) -> None:
    table = mergeplan.state.environments.get("prod").snapshots["shop.top"].table
    engine.fetch(f"INSERT INTO {table} SELECT 99")  # by hand

    restated = restate(mergeplan, "2026-01-06 05:00:00", "shop.top")

    assert models(restated) == {"shop.top": False, "shop.over": False}
    assert rows(engine, "SELECT price FROM shop.top") == [(30,)]
    assert models(run_at(mergeplan, "2026-01-07 05:00:00"))["shop.over"] is True


@pytest.mark.prove
def test_a_model_whose_table_somebody_dropped_is_computed(mergeplan: CommandLine, engine: SparkEngine) -> None:
    engine.fetch(f"DROP TABLE {mergeplan.state.environments.get('prod').snapshots['shop.top'].table}")

    ran = run_at(mergeplan, "2026-01-07 05:00:00")

    assert (models(ran)["shop.top"], models(ran)["shop.over"]) == (False, False)
    assert rows(engine, "SELECT price FROM shop.over") == [(31,)]


@pytest.mark.prove
def test_an_audit_that_finds_rows_fails_a_model_that_is_unchanged(mergeplan: CommandLine) -> None:
    audited = TOP.replace("kind FULL", "kind FULL, audits (fresh())")
    mergeplan.write("models/top.sql", audited)
    mergeplan.write(
        "audits/fresh.sql", "AUDIT (name fresh);\nSELECT * FROM @this_model WHERE @execution_ds > '2026-01-06'"
    )
    assert mergeplan("plan", "--auto-apply", "--execution-time", "2026-01-06 06:00:00").code == 0

    first, again = run_at(mergeplan, "2026-01-07 05:00:00"), run_at(mergeplan, "2026-01-07 06:00:00")

    assert (first.code, again.code) == (4, 4)
    assert "shop.over" not in {line["model"] for line in first.lines if line["event"] == "batch"}


@pytest.mark.prove
def test_what_follows_from_more_than_our_tables_is_computed_each_time(
    shop: Shop, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.fetch("CREATE TABLE default.others USING parquet AS SELECT 1 AS n")
    files = {name: f"MODEL (name shop.{name}, kind FULL);\n{query}" for name, query in NEVER.items()}
    opened = shop(shown="", apart="", total="", daily="", **files)
    assert opened("plan", "--auto-apply", "--execution-time", "2026-01-06 05:00:00").code == 0

    version, names = engine.tables.version, list[str]()
    monkeypatch.setattr(engine.tables, "version", lambda name: [names.append(name), version(name)][1])

    ran = run_at(opened, "2026-01-07 05:00:00")

    assert models(ran) == {f"shop.{name}": False for name in NEVER}
    assert names.count("default.others") == 1  # of a table without a version Spark is asked once


@pytest.mark.prove
def test_a_table_that_is_restated_is_read_again(mergeplan: CommandLine, engine: SparkEngine) -> None:
    late = "MODEL (name shop.sum, kind FULL);\nSELECT sum(price) AS total FROM shop.daily"
    mergeplan.write("models/sum.sql", late)
    assert mergeplan("plan", "--auto-apply", "--execution-time", "2026-01-06 05:00:00").code == 0
    assert models(run_at(mergeplan, "2026-01-07 05:00:00"))["shop.sum"] is False  # another day came

    restated = restate(mergeplan, "2026-01-07 05:00:00", "shop.daily")

    assert models(restated)["shop.sum"] is False
    assert rows(engine, "SELECT total FROM shop.sum") == [(60,)]


@pytest.mark.prove
@pytest.mark.skipif(not FORMAT, reason="`make prove-lakehouse` says which format")
def test_a_model_of_others_tables_is_computed_when_one_of_them_was_written(shop: Shop, engine: SparkEngine) -> None:
    engine.fetch("DROP TABLE IF EXISTS default.others")
    engine.fetch(f"CREATE TABLE default.others USING {FORMAT} AS SELECT 1 AS n")
    opened = shop(
        shown="",
        apart="",
        total="",
        daily="",
        items="",
        outside=f"MODEL (name shop.outside, kind FULL);\n{NEVER['outside']}",
    )
    assert opened("plan", "--auto-apply", "--execution-time", "2026-01-06 05:00:00").code == 0

    first = run_at(opened, "2026-01-07 05:00:00")
    engine.fetch("INSERT INTO default.others VALUES (2)")
    second, third = run_at(opened, "2026-01-08 05:00:00"), run_at(opened, "2026-01-09 05:00:00")

    assert [models(ran) for ran in (first, second, third)] == [{"shop.outside": kept} for kept in (True, False, True)]
    assert rows(engine, "SELECT n FROM shop.outside ORDER BY n") == [(1,), (2,)]
    engine.fetch("DROP TABLE default.others")
