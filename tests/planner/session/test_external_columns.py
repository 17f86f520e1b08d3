"""External tables that have more columns than are declared: what a plan says of them, and what prod holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.table import Table
from mergeplan.planner.model.model import Column
from mergeplan.planner.plan.change import Category, Change
from mergeplan.planner.semantics.columns import _analyze_query
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.settings import SessionSettings
from tests.planner.cli.conftest import TODAY, Lent
from tests.planner.shop import ALONE
from tests.sampling import prove_rest

COLUMNS = tuple(Column(name, "int") for name in ("k", "id", "a"))
DECLARED = "- name: raw.t\n  columns: {id: int, a: int}\n"
OPEN = f"{DECLARED}  partial_columns: true\n"


def write_models(folder: Path, declared: str, **queries: str) -> None:
    for file in (folder / "models").glob("*.sql"):
        file.unlink()
    (folder / "external_models.yaml").write_text(declared)
    for name, query in queries.items():
        (folder / f"models/{name}.sql").write_text(f"MODEL (name shop.{name}, kind FULL);\n{query}")


@pytest.fixture
def session(tmp_path: Path, engine: SparkEngine, shop: Callable[..., Session]) -> Session:
    table = Table("raw.t", COLUMNS)
    engine.tables.create(table)
    engine.tables.replace(table, "SELECT 9 AS k, 1 AS id, 2 AS a")
    return shop(**ALONE, total="")


def apply_edit(session: Session, folder: Path, declared: str, before: str, after: str) -> Change:
    """The change of `shop.m` by an edit of its query, applied to prod."""
    write_models(folder, declared, m=before)
    session.plan("prod").apply()
    write_models(folder, declared, m=after)
    plan = session.plan("prod")
    plan.apply()
    return next(change for change in plan.changes if change.name == "shop.m")


@pytest.mark.parametrize("star", prove_rest(["*", "DISTINCT *", "* EXCEPT (k)"]))
def test_a_star_over_a_table_that_is_declared_in_part_has_all_columns(
    session: Session, tmp_path: Path, engine: SparkEngine, star: str
) -> None:
    change = apply_edit(session, tmp_path, OPEN, "SELECT id, a FROM raw.t", f"SELECT {star} FROM raw.t")

    assert (change.category is Category.EQUIVALENT) == (star == "* EXCEPT (k)")
    names = [column.name for column in engine.schema("SELECT * FROM shop.m")]
    assert names == (["id", "a"] if star == "* EXCEPT (k)" else ["k", "id", "a"])


def test_a_star_over_a_declared_table_has_the_declared_columns(
    session: Session, tmp_path: Path, engine: SparkEngine
) -> None:
    change = apply_edit(session, tmp_path, DECLARED, "SELECT id, a FROM raw.t", "SELECT * FROM raw.t")

    assert change.rule == "same-query"
    assert [column.name for column in engine.schema("SELECT * FROM shop.m")] == ["id", "a"]
    write_models(tmp_path, DECLARED, m="SELECT * FROM raw.t", n="SELECT DISTINCT * FROM raw.t")
    plan = session.plan("prod")
    plan.apply()
    assert engine.fetch("SELECT * FROM shop.n").rows == ((1, 2),)
    assert "`raw.t` has `k`, which external_models.yaml does not declare" in plan.decision.warnings[0].message


@pytest.mark.prove
def test_a_column_that_is_not_declared_may_be_read_by_its_name(
    session: Session, tmp_path: Path, engine: SparkEngine
) -> None:
    change = apply_edit(session, tmp_path, OPEN, "SELECT id FROM raw.t", "SELECT id, k FROM raw.t WHERE k > 1")

    assert change.category is Category.BREAKING
    assert engine.fetch("SELECT id, k FROM shop.m").rows == ((1, 9),)


def test_a_plan_without_changes_analyses_a_query_over_a_table_declared_in_part_once(
    session: Session, tmp_path: Path, engine: SparkEngine
) -> None:
    """After an update of mergeplan, or on another machine, each plan would do it again."""
    write_models(tmp_path, OPEN, m="SELECT id, a FROM raw.t")
    session.plan("prod").apply()
    settings = SessionSettings(tmp_path, cache=tmp_path / "empty", open_engine=lambda *_: Lent(engine))
    misses = []
    for _ in range(2):
        _analyze_query.cache_clear()
        with Session(settings, TODAY) as new:
            assert new.plan("prod").decision.is_empty
        misses.append(_analyze_query.cache_info().misses)

    assert misses == [1, 0]


@pytest.fixture
def padded(session: Session, engine: SparkEngine) -> Session:
    engine.fetch("CREATE TABLE raw.texts (id INT, c CHAR(5), v STRING) USING parquet")
    engine.fetch("INSERT INTO raw.texts VALUES (1, 'ab', 'x')")
    return session


@pytest.mark.parametrize("declared", prove_rest(["", "- name: raw.texts\n  columns: {id: int, c: string}\n"]))
def test_a_char_of_the_catalog_is_compared_as_one(
    padded: Session, tmp_path: Path, engine: SparkEngine, declared: str
) -> None:
    """Spark pads the texts of two comparisons, and those of BETWEEN not; its schemas call a CHAR a string."""
    before, after = ("c BETWEEN 'ab' AND 'ab'", "c >= 'ab' AND c <= 'ab'")
    texts = (f"SELECT id FROM raw.texts WHERE {where}" for where in (before, after))

    apply_edit(padded, tmp_path, declared, *texts)

    assert engine.fetch("SELECT id FROM shop.m").rows == ((1,),)


@pytest.mark.parametrize("type_", prove_rest(["VARCHAR(5)", "CHAR(5)"]))
def test_a_kept_reader_of_a_declared_text_of_a_length_is_planned(padded: Session, tmp_path: Path, type_: str) -> None:
    for name, text in {"c": "SELECT v AS c FROM raw.texts", "r": "SELECT c AS d FROM shop.c"}.items():
        (tmp_path / f"models/{name}.sql").write_text(f"MODEL (name shop.{name}, kind FULL);\n{text}")
    typed = tmp_path / "models/c.sql"
    typed.write_text(typed.read_text().replace("FULL", f"FULL, columns (c {type_})"))
    padded.plan("prod").apply()
    (tmp_path / "models/r.sql").write_text("MODEL (name shop.r, kind FULL);\nSELECT q.c AS d FROM shop.c AS q")

    assert [change.rule for change in padded.plan("prod").changes] == ["same-query"]


def test_a_reader_of_a_view_that_becomes_a_table_is_computed_where_a_char_is_declared_as_a_string(
    padded: Session, tmp_path: Path, engine: SparkEngine
) -> None:
    """Spark pads a CHAR in a view, and a table has a STRING there."""
    (tmp_path / "external_models.yaml").write_text("- name: raw.texts\n  columns: {id: int, c: string, v: string}\n")
    (tmp_path / "models/r.sql").write_text("MODEL (name shop.r, kind FULL);\nSELECT id FROM shop.v WHERE c = 'ab'")
    for kind in ("VIEW", "FULL"):
        (tmp_path / "models/v.sql").write_text(f"MODEL (name shop.v, kind {kind});\nSELECT id, c FROM raw.texts")
        padded.plan("prod").apply()

    assert engine.fetch("SELECT id FROM shop.r").rows == ()
