"""What prod recorded while a pull request was open is there after the merge; by then its sources no longer have it."""

from __future__ import annotations

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.planner.cli.conftest import CommandLine
from tests.planner.cli.test_restate import AT, FILES, Shop, raw
from tests.planner.shop import rows

pytestmark = pytest.mark.prove

UNMANAGED = "INCREMENTAL_UNMANAGED"
HISTORY = "SCD_TYPE_2_BY_COLUMN (unique_key id, columns [day], invalidate_hard_deletes true)"
BY_KEY = "INCREMENTAL_BY_UNIQUE_KEY (unique_key (id, day))"
OTHER = "MODEL (name shop.other, kind FULL);\nSELECT 1 AS one"
SINCE = ("--forward-only", "--effective-from", "2026-01-04")


def model_text(kind: str, more: str = "") -> str:
    return f"MODEL (name shop.kept, kind {kind});\nSELECT id, day{more} FROM default.raw"


def go(cli: CommandLine, *arguments: str, on: str) -> int:
    return cli(*arguments, "--execution-time", f"2026-01-{on}:00:00").code


def read_rows(engine: SparkEngine) -> list[tuple[object, ...]]:
    return rows(engine, "SELECT id, day FROM shop.kept ORDER BY ALL")


def open_kept(shop: Shop, engine: SparkEngine, kind: str) -> CommandLine:
    raw(engine, "01")
    cli = shop(**{**FILES, "daily": "", "total": "", "kept": model_text(kind), "other": OTHER})
    assert cli("plan", "--auto-apply", *AT).code == 0
    return cli


def run_prod(cli: CommandLine, engine: SparkEngine) -> list[tuple[object, ...]]:
    """Prod runs on two days, then its source loses what it read; returns what prod shows."""
    for on, values in (("07 05", ["02", "02"]), ("08 05", ["02", "02", "02"])):
        raw(engine, *values)
        assert go(cli, "run", on=on) == 0
    raw(engine, "03")
    return read_rows(engine)


@pytest.mark.parametrize("kind", [UNMANAGED, HISTORY])
def test_a_merge_that_failed_takes_over_what_prod_has_when_it_is_tried_again(
    shop: Shop, engine: SparkEngine, kind: str
) -> None:
    cli = open_kept(shop, engine, kind)
    cli.write("models/kept.sql", model_text(kind, ", id + 1 AS more"))
    cli.write("models/other.sql", OTHER.replace("1 AS", "raise_error('no') AS"))
    assert go(cli, "plan", "--auto-apply", on="06 06") != 0
    before = run_prod(cli, engine)

    cli.write("models/other.sql", OTHER)
    assert go(cli, "plan", "--auto-apply", on="08 06") == 0

    assert read_rows(engine) == before


@pytest.mark.parametrize("kind", [UNMANAGED, HISTORY])
def test_a_table_filled_in_order_keeps_all_rows_whatever_the_effective_date(
    shop: Shop, engine: SparkEngine, kind: str
) -> None:
    cli = open_kept(shop, engine, kind)
    cli.write("models/kept.sql", model_text(kind, ", id + 1 AS more"))
    assert go(cli, "plan", "dev", *SINCE, "--auto-apply", on="06 06") == 0
    before = run_prod(cli, engine)

    assert go(cli, "plan", *SINCE, "--auto-apply", on="08 06") == 0

    assert read_rows(engine) == before


@pytest.mark.parametrize("kind", [UNMANAGED, HISTORY, BY_KEY])
def test_a_copy_that_its_environment_ran_has_what_prod_recorded_when_it_is_merged(
    shop: Shop, engine: SparkEngine, kind: str
) -> None:
    cli = open_kept(shop, engine, kind)
    cli.edit("models/kept.sql", f"kind {kind}", f"kind {kind}, storage_format orc")
    assert go(cli, "plan", "dev", "--auto-apply", on="06 06") == 0
    before = run_prod(cli, engine)
    assert go(cli, "run", "dev", on="08 06") == 0

    assert go(cli, "plan", "--auto-apply", on="08 07") == 0

    assert read_rows(engine) == before


@pytest.mark.parametrize("lookback", ["", ", lookback 1"])
@pytest.mark.parametrize("layout", ["", ", storage_format orc"])
@pytest.mark.parametrize("runs", [False, True])
def test_late_rows_of_prod_are_there_after_an_edit_that_shortens_the_lookback(
    shop: Shop, engine: SparkEngine, lookback: str, layout: str, runs: bool
) -> None:
    raw(engine, "01", "02", "05")
    cli = shop(**{**FILES, "total": "", "daily": FILES["daily"].replace("batch_size 7", "lookback 3")})
    assert cli("plan", "--auto-apply", *AT).code == 0
    cli.edit("models/daily.sql", ", lookback 3)", f"{lookback}){layout}")
    cli.edit("models/daily.sql", "SELECT id, day", "SELECT id, day" if layout else "SELECT id * 2 AS id, day")
    assert go(cli, "plan", "dev", "--auto-apply", on="06 06") == 0
    raw(engine, "01", "02", "05", "03", "05", "04", "06")
    assert go(cli, "run", on="07 05") == 0
    before = rows(engine, "SELECT day FROM shop.daily ORDER BY 1")
    assert not runs or go(cli, "run", "dev", on="07 06") == 0

    assert go(cli, "plan", "--auto-apply", on="07 07") == 0

    assert rows(engine, "SELECT day FROM shop.daily ORDER BY 1") == before


def test_days_of_a_run_that_ignored_the_cron_are_there_after_a_merge(shop: Shop, engine: SparkEngine) -> None:
    raw(engine, "01", "05", "06", "07")
    weekly = FILES["daily"].replace("batch_size 7)", "batch_size 7), cron '@weekly', interval_unit day")
    cli = shop(**{**FILES, "daily": weekly})
    assert cli("plan", "--auto-apply", *AT).code == 0
    assert go(cli, "run", "--ignore-cron", on="08 05") == 0
    before = rows(engine, "SELECT day FROM shop.daily ORDER BY 1")
    cli.edit("models/daily.sql", "SELECT id, day", "SELECT id * 2 AS id, day")
    assert go(cli, "plan", "dev", "--auto-apply", on="08 06") == 0

    assert go(cli, "plan", "--auto-apply", on="08 07") == 0

    assert len(before) == 4
    assert rows(engine, "SELECT day FROM shop.daily ORDER BY 1") == before


@pytest.mark.parametrize("layout", ["", ", storage_format orc"])
def test_a_day_that_an_environment_ran_before_prod_did_is_that_of_prod_after_the_merge(
    shop: Shop, engine: SparkEngine, layout: str
) -> None:
    raw(engine, "01", "05")
    direct = "MODEL (name shop.direct, kind FULL);\nSELECT count(*) AS n FROM default.raw"
    cli = shop(**{**FILES, "direct": direct})
    assert cli("plan", "--auto-apply", *AT).code == 0
    cli.edit("models/daily.sql", "batch_size 7)", f"batch_size 7){layout}")
    cli.edit("models/daily.sql", "SELECT id, day", "SELECT id, day" if layout else "SELECT id * 2 AS id, day")
    cli.edit("models/direct.sql", "count(*) AS n", "count(*) AS n, 1 AS one")
    assert go(cli, "plan", "dev", "--auto-apply", on="06 06") == 0
    assert go(cli, "run", "dev", on="07 02") == 0
    raw(engine, "01", "05", "06", "06")
    assert go(cli, "run", on="07 05") == 0

    assert go(cli, "plan", "--auto-apply", on="07 06") == 0

    for table in ("daily", "direct"):
        column = "count(*)" if table == "daily" else "n"
        assert rows(engine, f"SELECT {column} FROM shop.{table}") == [(4,)]
    assert rows(engine, "SELECT n FROM shop.total") == [(4,)]


def test_a_day_that_a_failed_apply_computed_before_prod_did_is_that_of_prod_after_the_merge(
    shop: Shop, engine: SparkEngine
) -> None:
    raw(engine, "01", "05")
    direct = "MODEL (name shop.direct, kind FULL);\nSELECT count(*) AS n FROM default.raw"
    cli = shop(**{**FILES, "direct": direct, "other": OTHER})
    assert cli("plan", "--auto-apply", *AT).code == 0
    cli.edit("models/daily.sql", "SELECT id, day", "SELECT id * 2 AS id, day")
    cli.edit("models/direct.sql", "count(*) AS n", "count(*) AS n, 1 AS one")
    cli.write("models/other.sql", OTHER.replace("1 AS", "raise_error('no') AS"))
    assert go(cli, "plan", "dev", "--end", "2026-01-06", "--auto-apply", on="07 02") != 0
    raw(engine, "01", "05", "06", "06")
    assert go(cli, "run", on="07 05") == 0

    cli.write("models/other.sql", OTHER)
    assert go(cli, "plan", "--auto-apply", on="07 06") == 0

    assert rows(engine, "SELECT count(*), (SELECT n FROM shop.direct) FROM shop.daily") == [(4, 4)]
    assert rows(engine, "SELECT n FROM shop.total") == [(4,)]


def test_days_that_prod_caught_up_with_after_a_rollback_are_there_when_the_edit_is_merged_again(
    shop: Shop, engine: SparkEngine
) -> None:
    raw(engine, "01", "05")
    cli = shop(**{**FILES, "total": ""})
    assert cli("plan", "--auto-apply", *AT).code == 0
    cli.edit("models/daily.sql", "SELECT id, day", "SELECT id * 2 AS id, day")
    assert go(cli, "plan", "--auto-apply", on="06 06") == 0
    assert go(cli, "run", on="08 05") == 0
    raw(engine, "01", "05", "06", "06")
    assert cli("rollback", "prod", "--auto-apply").code == 0
    assert go(cli, "run", on="08 07") == 0

    assert go(cli, "plan", "--auto-apply", on="08 08") == 0

    assert rows(engine, "SELECT count(*) FROM shop.daily") == [(4,)]


def test_a_day_that_another_environment_computes_in_the_table_of_prod_is_computed_again_elsewhere(
    shop: Shop, engine: SparkEngine
) -> None:
    """The pull request ran before, without the late row."""
    raw(engine, "01", "05")
    cli = shop(**{**FILES, "total": "", "other": OTHER})
    assert cli("plan", "--auto-apply", *AT).code == 0
    for name, old, new in (("other", "1 AS", "2 AS"), ("daily", "SELECT id", "SELECT id * 2 AS id")):
        cli.edit(f"models/{name}.sql", old, new)
        assert go(cli, "plan", name, "--auto-apply", on="06 06") == 0
        cli.edit(f"models/{name}.sql", new, old)
    raw(engine, "01", "05", "06")
    assert go(cli, "run", "daily", on="07 05") == 0
    raw(engine, "01", "05", "06", "06")
    assert go(cli, "run", "other", on="07 06") == 0

    cli.edit("models/daily.sql", "SELECT id", "SELECT id * 2 AS id")
    assert go(cli, "plan", "--auto-apply", on="07 07") == 0

    assert rows(engine, "SELECT id FROM shop.daily ORDER BY 1") == [(0,), (2,), (4,), (6,)]
