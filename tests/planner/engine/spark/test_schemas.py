"""Schemas that are missing, dropped meanwhile, or closed to whoever runs a plan."""

from __future__ import annotations

from typing import Any

import pytest

from mergeplan.planner.engine.protocol import Stands, ViewText
from mergeplan.planner.engine.spark import described
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import QueryError


@pytest.fixture(name="errors")
def _errors(engine: SparkEngine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Statements that Spark refuses; one that creates a schema is refused to whom it is not allowed."""
    run, refused = engine._sessions.run, list[str]()

    def note(sql: str) -> Any:
        try:
            return run("CREATE SCHEMA `not`.`allowed`" if sql.startswith("CREATE SCHEMA") and "closed" in sql else sql)
        except Exception:
            refused.append(sql)
            raise

    monkeypatch.setattr(engine._sessions, "run", note)
    return refused


def test_no_statement_fails_to_find_out_that_a_schema_is_missing(engine: SparkEngine, errors: list[str]) -> None:
    assert engine.catalog.objects("shop") == frozenset()
    assert engine.catalog.swap_view(ViewText("shop.v", "SELECT 1 AS a", stands=Stands.NOTHING))

    assert engine.catalog.objects("shop") == {"v"}
    assert errors == []


def test_who_may_not_create_schemas_creates_in_one_that_is_there_unseen(
    engine: SparkEngine, errors: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.fetch("create schema closed")
    monkeypatch.setattr(described, "has_schema", lambda _sessions, _schema: False)

    assert engine.catalog.swap_view(ViewText("closed.v", "SELECT 1 AS a", stands=Stands.NOTHING))
    assert (len(errors), engine.fetch("SELECT a FROM closed.v").rows) == (1, ((1,),))


def test_a_schema_that_was_dropped_meanwhile_is_created_again(engine: SparkEngine) -> None:
    engine.catalog.swap_view(ViewText("shop.v", "SELECT 1 AS a"))
    engine.fetch("DROP SCHEMA shop CASCADE")

    assert engine.catalog.swap_view(ViewText("shop.v", "SELECT 2 AS a", stands=Stands.NOTHING))
    assert engine.fetch("SELECT a FROM shop.v").rows == ((2,),)


def test_no_table_counts_as_dropped_while_no_schema_can_be_listed(
    engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So is a metastore whose disk was full: it finds nothing, and reports no error of its own."""
    run = engine._sessions.run
    monkeypatch.setattr(described, "has_schema", lambda _sessions, _schema: False)
    monkeypatch.setattr(
        engine._sessions, "run", lambda sql: run("SELECT gone" if sql.startswith("SHOW SCHEMAS") else sql)
    )

    for ask in (engine.tables.drop, engine.catalog.standing, engine.tables.last_write):
        with pytest.raises(QueryError, match="gone"):
            ask("shop.t")
