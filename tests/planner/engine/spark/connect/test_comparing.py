"""The warm Spark compares plans as a Spark of one's own does, under the settings of who asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.engine.analysis import NEW, OLD, SCHEMA, Analysis, EmptyTable, QueryPair, TableView
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.engine import SparkEngine, open_engine
from mergeplan.planner.errors import QueryError, RequestError
from mergeplan.planner.model.model import Column
from tests.planner.engine.spark.process.test_warm import warm_engine, warm_home

__all__ = ["warm_engine", "warm_home"]  # fixtures

pytestmark = pytest.mark.prove

TABLE = f"{SCHEMA}.mergeplan_table_t"
SPELT = f"SELECT ID AS x FROM {TABLE}"


def test_plans_are_compared_as_by_a_spark_of_ones_own(warm_engine: SparkEngine, engine: SparkEngine) -> None:
    table = EmptyTable("mergeplan_table_t", (Column("id", "int"), Column(f"a{OLD}", "int"), Column(f"a{NEW}", "int")))
    texts = ("SELECT id + 1 AS x", f"SELECT a{OLD} AS x"), ("SELECT 1 + id AS x", f"SELECT a{NEW} AS x")
    pairs = [QueryPair(f"{first} FROM {TABLE}", f"{second} FROM {TABLE}") for first, second in zip(*texts, strict=True)]
    view = TableView("mergeplan_view_v", f"SELECT id FROM {TABLE}")
    analysis = Analysis((table,), (view,), (*pairs, QueryPair("", f"SELECT nope FROM {TABLE}")))

    answers = warm_engine.compare_queries(analysis)

    assert answers is not None
    assert [answer.same for answer in answers] == [True, False, False]
    assert (answers[1].first_reads, answers[1].second_reads) == ((f"a{OLD}",), (f"a{NEW}",))
    assert "nope" in answers[2].error
    assert answers == engine.compare_queries(analysis)


def test_plans_are_compared_under_the_settings_of_the_gateway(warm_home: Path, warm_engine: SparkEngine) -> None:
    analysis = Analysis((EmptyTable("mergeplan_table_t", (Column("id", "int"),)),), (), (QueryPair("", SPELT),))
    strict = open_engine(Connection(conf=(("spark.sql.caseSensitive", "true"),)), warm_home, wait=0)
    refused, accepted = strict.compare_queries(analysis), warm_engine.compare_queries(analysis)
    strict.close()

    assert refused and "ID" in refused[0].error
    assert accepted and not accepted[0].error


def test_a_closed_function_is_refused_before_a_plan_is_made(warm_engine: SparkEngine) -> None:
    closed = "SELECT reflect('java.lang.System', 'getProperty', 'user.home') AS x"

    view, pair = TableView("mergeplan_view_x", closed), QueryPair("", closed)
    for analysis in (Analysis((), (), (pair,)), Analysis((), (view,), ())):
        with pytest.raises(RequestError, match="reflect"):
            warm_engine.compare_queries(analysis)


def test_what_the_warm_spark_cannot_answer_is_an_error(warm_engine: SparkEngine) -> None:
    broken = Analysis((EmptyTable("mergeplan_table_x", (Column("a", "no_such_type"),)),), (), ())

    with pytest.raises(QueryError, match="NO_SUCH_TYPE"):
        warm_engine.compare_queries(broken)
