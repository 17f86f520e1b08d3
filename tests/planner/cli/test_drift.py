"""What somebody dropped or changed by hand is noticed, named, and mended by `run`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.planner.engine.spark import described
from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.conftest import FORMAT
from tests.planner.cli.conftest import TODAY, CommandLine
from tests.planner.shop import ALONE, FILES, rows

Shop = Callable[..., CommandLine]
TOTAL = "MODEL (name shop.total, kind FULL);\nSELECT id, 1 AS a FROM shop.names"
EMPTY = "DELETE FROM" if FORMAT else "TRUNCATE TABLE"
MODELS = {
    **ALONE,
    "config": FILES["config.yaml"].replace("01}", f"01, table_format: {FORMAT}}}" if FORMAT else "01}"),
    "names": "MODEL (name shop.names, kind VIEW);\nSELECT id FROM shop.items",
    "items": "MODEL (name shop.items, kind FULL);\nSELECT EXPLODE(SEQUENCE(1, 3)) AS id",
    "total": TOTAL,
}


def promote_all(mergeplan: CommandLine) -> dict[str, str]:
    """Everything in prod; the physical table of each model."""
    assert mergeplan("plan", "--auto-apply", "--execution-time", TODAY).code == 0
    return {name: snapshot.table for name, snapshot in mergeplan.state.environments.get("prod").snapshots.items()}


def mend(mergeplan: CommandLine, engine: SparkEngine) -> str:
    """What `run --refresh` says; afterwards there is no drift, and every view can be read."""
    ran = mergeplan("run", "--refresh", "--execution-time", TODAY)
    assert ran.code == 0, ran.err
    assert "drift      ok" in mergeplan("doctor").out
    assert rows(engine, "SELECT COUNT(*), SUM(a) FROM shop.total") == [(3, 3)]
    assert rows(engine, "SELECT COUNT(*) FROM shop.names") == [(3,)]
    assert rows(engine, "SELECT COUNT(*) FROM shop.items") == [(3,)]
    return ran.out + ran.err


@pytest.mark.parametrize(
    ("damage", "fact"),
    [
        ("DROP VIEW shop.total", "The view `shop.total` of `prod` is gone from the catalog."),
        pytest.param(
            "DROP VIEW shop.names", "The view `shop.names` of `prod` is gone from the catalog.", marks=pytest.mark.prove
        ),
        pytest.param(
            "DROP TABLE {shop.total}",
            "The table `{shop.total}` of `shop.total` in `prod` is gone from the catalog.",
            marks=pytest.mark.prove,
        ),
        ("DROP TABLE {shop.items}", "The table `{shop.items}` of `shop.items` in `prod` is gone from the catalog."),
        pytest.param(
            "DROP VIEW {shop.names}",
            "The table `{shop.names}` of `shop.names` in `prod` is gone from the catalog.",
            marks=pytest.mark.prove,
        ),
        pytest.param(
            "DROP SCHEMA shop CASCADE",
            "The view `shop.total` of `prod` is gone from the catalog.",
            marks=pytest.mark.prove,
        ),
    ],
)
def test_what_is_dropped_or_changed_by_hand_is_named_and_mended(
    shop: Shop, engine: SparkEngine, damage: str, fact: str
) -> None:
    mergeplan = shop(**MODELS)
    tables = promote_all(mergeplan)
    for model, table in tables.items():
        damage, fact = damage.replace(f"{{{model}}}", table), fact.replace(f"{{{model}}}", table)
    engine.fetch(damage)

    planned, examined = mergeplan("plan", "--refresh"), mergeplan("doctor")

    assert fact in " ".join(planned.out.split())
    assert "`mergeplan run prod --refresh`" in " ".join(planned.out.split())
    assert (examined.code, fact in examined.out) == (1, True)
    assert fact in " ".join(mend(mergeplan, engine).split())


def test_a_metastore_whose_disk_was_full_finds_no_table_and_none_counts_as_dropped(
    shop: Shop, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forgotten tables are built again, and a history would begin again."""
    mergeplan, run = shop(**MODELS), engine._sessions.run
    tables = promote_all(mergeplan).values()
    held = mergeplan.state.intervals.load_timelines(tables)
    monkeypatch.setattr(described, "has_schema", lambda _sessions, _schema: False)
    monkeypatch.setattr(
        engine._sessions, "run", lambda sql: run("SELECT gone" if sql.startswith("SHOW SCHEMAS") else sql)
    )

    ran = mergeplan("run", "--refresh", "--execution-time", TODAY)

    assert ran.code == 1, ran.out
    assert mergeplan.state.intervals.load_timelines(tables) == held
    assert mergeplan.state.tables.all().keys() >= set(tables)


@pytest.mark.prove
@pytest.mark.parametrize("model", ["shop.items", pytest.param("shop.total", marks=pytest.mark.prove)])
def test_a_table_that_is_emptied_by_hand_is_named_and_restated(shop: Shop, engine: SparkEngine, model: str) -> None:
    mergeplan = shop(**MODELS)
    table = promote_all(mergeplan)[model]
    engine.fetch(f"{EMPTY} {table}")
    fact = f"The table `{table}` of `{model}` in `prod` holds no rows, although its batches wrote some."

    planned, examined = mergeplan("plan", "--refresh"), mergeplan("doctor")

    assert fact in " ".join(planned.out.split())
    assert (examined.code, f"`mergeplan plan --restate-model {model}`" in examined.out) == (1, True)
    restated = mergeplan("plan", "--restate-model", model, "--auto-apply", "--execution-time", TODAY)
    assert restated.code == 0, restated.err
    mend(mergeplan, engine)


@pytest.mark.prove
def test_an_emptied_seed_is_dropped_and_made_again(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**MODELS)
    mergeplan.write("seeds/codes.csv", "code\na\nb\n")
    mergeplan.write("models/codes.sql", "MODEL (name shop.codes, kind SEED (path '../seeds/codes.csv'));")
    codes = promote_all(mergeplan)["shop.codes"]
    engine.fetch(f"{EMPTY} {codes}")

    assert "Drop the table, and `mergeplan run prod --refresh` creates and computes it." in mergeplan("doctor").out
    engine.fetch(f"DROP TABLE {codes}")
    mend(mergeplan, engine)
    assert rows(engine, "SELECT COUNT(*) FROM shop.codes") == [(2,)]


@pytest.mark.prove
def test_a_table_that_was_computed_without_rows_is_no_drift(shop: Shop) -> None:
    mergeplan = shop(**MODELS | {"total": TOTAL + " WHERE id > 3"})
    promote_all(mergeplan)

    assert "drift      ok" in mergeplan("doctor").out


@pytest.mark.prove
def test_a_seed_and_an_environment_of_ones_own_are_mended_too(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**MODELS)
    mergeplan.write("seeds/codes.csv", "code\na\nb\n")
    mergeplan.write("models/codes.sql", "MODEL (name shop.codes, kind SEED (path '../seeds/codes.csv'));")
    codes = promote_all(mergeplan)["shop.codes"]
    mergeplan.write("models/total.sql", TOTAL.replace("1 AS a", "1 AS a, 2 AS b"))
    assert mergeplan("plan", "dev", "--auto-apply", "--execution-time", TODAY).code == 0
    engine.fetch(f"DROP TABLE {codes}")
    engine.fetch("DROP VIEW shop__dev.total")

    dev, prod = (mergeplan("run", name, "--refresh", "--execution-time", TODAY) for name in ("dev", "prod"))

    assert "The view `shop__dev.total` of `dev` is gone from the catalog. This run restores it." in " ".join(
        dev.out.split()
    )
    assert f"The table `{codes}`" not in dev.out
    assert f"The table `{codes}`" in " ".join(prod.out.split())
    assert rows(engine, "SELECT SUM(b) FROM shop__dev.total") == [(6,)]
    assert rows(engine, "SELECT COUNT(*) FROM shop.codes") == [(2,)]


@pytest.mark.prove
def test_a_view_that_was_replaced_is_named_and_restored_once_it_is_dropped(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**MODELS)
    promote_all(mergeplan)
    engine.fetch("ALTER VIEW shop.total AS SELECT 7 AS id, 7 AS a")

    examined, planned = mergeplan("doctor"), mergeplan("plan", "--refresh")

    assert (examined.code, "`shop.total` of `prod` does not show the model's table" in examined.out) == (1, True)
    assert "Drop it, then `mergeplan run prod --refresh` restores it." in " ".join(planned.out.split())
    engine.fetch("DROP VIEW shop.total")
    mend(mergeplan, engine)


def test_a_view_of_a_version_that_the_state_does_not_know_is_no_change_by_hand(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**MODELS)
    promote_all(mergeplan)
    engine.fetch("CREATE TABLE mergeplan__shop.shop__total__abc AS SELECT * FROM shop.total")
    engine.fetch("ALTER VIEW shop.total AS SELECT * FROM `mergeplan__shop`.`shop__total__abc`")

    examined = " ".join(mergeplan("doctor").out.split())

    assert "`shop.total` of `prod` shows another version of the model's table than the state says." in examined
    assert "If the state is a restored copy, leave it and plan again." in examined


def test_a_table_in_the_place_of_a_view_is_named_and_left_alone(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**MODELS)
    promote_all(mergeplan)
    engine.fetch("DROP VIEW shop.total")
    engine.fetch("CREATE TABLE shop.total AS SELECT 'theirs' AS a")

    examined, ran = mergeplan("doctor"), mergeplan("run", "--refresh", "--execution-time", TODAY)

    assert "a table has its name. Rename or drop that table" in " ".join(examined.out.split())
    assert ran.code == 0
    assert rows(engine, "SELECT a FROM shop.total") == [("theirs",)]
    engine.fetch("DROP TABLE shop.total")
    mend(mergeplan, engine)


def test_a_plan_over_a_table_that_is_gone_says_so_before_it_computes(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**MODELS)
    items = promote_all(mergeplan)["shop.items"]
    engine.fetch(f"DROP TABLE {items}")
    mergeplan.write("models/total.sql", TOTAL.replace("1 AS a", "1 AS a, 2 AS b"))

    ran = mergeplan("plan", "dev", "--auto-apply", "--execution-time", TODAY)

    assert ran.code == 4
    assert f"The table `{items}` of `shop.items` in `prod` is gone" in " ".join(ran.err.split())
    assert "Run `mergeplan run prod --refresh` first" in " ".join(ran.err.split())


@pytest.mark.parametrize("verb", [("run",), ("plan", "--restate-model", "shop.items", "--auto-apply")])
def test_nothing_is_computed_or_forgotten_in_a_catalog_without_any_table_of_the_environment(
    shop: Shop, engine: SparkEngine, verb: tuple[str, ...]
) -> None:
    mergeplan = shop(**MODELS)
    tables = promote_all(mergeplan).values()
    held = mergeplan.state.intervals.load_timelines(tables)
    engine.fetch("DROP SCHEMA mergeplan__shop CASCADE")  # as another catalog, or one without permissions, looks
    ran = mergeplan(*verb, "--execution-time", "2026-01-09")

    assert (ran.code, "No table of `prod` is in this catalog." in ran.err) == (4, True)
    assert mergeplan.state.intervals.load_timelines(tables) == held
    assert engine.catalog.objects("mergeplan__shop") == frozenset()
    assert mergeplan("run", "--refresh", "--execution-time", "2026-01-09").code == 0


def test_a_plan_and_a_run_with_nothing_to_do_start_no_spark_and_one_with_something_due_looks(
    shop: Shop, engine: SparkEngine
) -> None:
    mergeplan = shop(**MODELS)
    promote_all(mergeplan)
    engine.fetch("DROP VIEW shop.names")
    mergeplan.opened.clear()

    idle = [mergeplan(verb, "--execution-time", TODAY).code for verb in ("plan", "run")]
    assert (idle, mergeplan.opened) == ([0, 0], [])
    later = mergeplan("run", "--execution-time", "2026-01-12")

    assert "The view `shop.names` of `prod` is gone from the catalog. This run restores it." in " ".join(
        later.out.split()
    )
    assert rows(engine, "SELECT COUNT(*) FROM shop.names") == [(3,)]
