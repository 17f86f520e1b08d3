"""Keywords as names, which Spark accepts nearly everywhere: read as Spark reads them, or refused with a way out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.state.store import StateStore
from tests.planner.parsing.test_statements import read
from tests.planner.shop import ALONE, plan_and_apply, rows, write_shop
from tests.planner.spelling.keyword_names import USES, keyword_uses

WORDS = tuple("values any for like outer using fetch create drop insert grant minus limit offset lock describe".split())
CLAUSES = """ALL AND AS BETWEEN CASE CROSS DISTINCT ELSE EXCEPT FROM HAVING INNER INTERSECT INTO JOIN LATERAL NOT ON
    OR SELECT THEN UNION WHEN WHERE WITH"""
SAMPLE = (
    "a column of a table",
    "an alias",
    "an argument",
    "a column in WHERE",
    "a field of STRUCT",
    "a field",
    "a table",
)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateStore]:
    opened = StateStore(f"sqlite:///{tmp_path}/state.db")
    yield opened
    opened.close()


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("use", SAMPLE)
def test_a_keyword_may_be_a_name(word: str, use: str) -> None:
    query = USES[use].replace("{}", word)

    model = read(query)

    assert model.written.text.split() == query.split()
    assert len(model.depends_on) == 1


def test_a_text_with_a_keyword_as_a_name_is_judged_by_its_words() -> None:
    texts = ("SELECT MAX(like) AS x FROM s.a", "SELECT MAX( LIKE ) AS x FROM s.a", "SELECT MAX(values) AS x FROM s.a")

    assert len({read(text).written.misread for text in texts}) == 2
    assert all(read(text).written.misread for text in texts)


def test_a_word_of_a_clause_is_refused_with_a_way_out() -> None:
    with pytest.raises(ProjectError) as refused:
        read("SELECT MAX(having) AS x FROM s.a")

    assert "If `having` is a name here, quote it with back-ticks." in str(refused.value)


def test_models_with_keywords_as_names_hold_their_rows(tmp_path: Path, engine: SparkEngine, state: StateStore) -> None:
    model = """MODEL (name shop.total, kind FULL);
WITH fetch AS (SELECT price AS like, 2 limit FROM shop.items)
SELECT SUM(like) AS drop, MAX(offset.limit) AS values, COUNT(*) AS any FROM fetch offset"""
    shop = write_shop(tmp_path, **{name: text for name, text in ALONE.items() if name != "items"}, total=model)

    plan_and_apply(shop, engine, state)

    expected = rows(engine, "SELECT SUM(price), 2, COUNT(*) FROM shop.items")
    assert rows(engine, "SELECT * FROM shop.total") == expected


@pytest.mark.prove
def test_every_keyword_is_read_where_spark_reads_it_or_its_refusal_says_how(engine: SparkEngine) -> None:
    session: Any = engine._sessions.shared.spark  # type: ignore[union-attr]
    parser = session._jsparkSession.sessionState().sqlParser()
    keywords = tuple(str(word) for (word,) in engine.fetch("SELECT keyword FROM SQL_KEYWORDS()").rows)
    refused = [(word, query) for word, _, query in keyword_uses(keywords) if not _reads(query)]

    assert {word for word, query in refused if _parses(parser, query)} <= {*CLAUSES.split()}


def _reads(query: str) -> bool:
    try:
        return bool(read(query).written.text)
    except ProjectError:
        return False


def _parses(parser: Any, query: str) -> bool:
    from pyspark.errors import PySparkException

    try:
        parser.parsePlan(query)
    except PySparkException:
        return False
    return True
