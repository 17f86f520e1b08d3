"""A query that costs the optimizer any time or memory is given up, and nothing beside it waits."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator

import pytest

from mergeplan.planner.engine.analysis import SCHEMA, TOO_SLOW, Analysis, EmptyTable, QueryPair
from mergeplan.planner.engine.spark.connect.local_analyzer import TOO_BIG, LocalAnalyzer
from mergeplan.planner.model.model import Column

pytestmark = pytest.mark.prove

TABLE = f"{SCHEMA}.mergeplan_table_t"
NESTED = "id"
for _ in range(2000):
    NESTED = f"({NESTED} + 1)"
DOUBLED = f"SELECT id AS a FROM {TABLE}"
for _ in range(40):  # each level is written into the next: 2^40 additions
    DOUBLED = f"SELECT a + a AS a FROM ({DOUBLED})"
BOMBS = {
    "memory": f"SELECT id, size(sequence(1, 2000000000)) AS n FROM {TABLE}",
    "nested": f"SELECT {NESTED} AS n FROM {TABLE}",
    "doubled": DOUBLED,
}
COSTLY = QueryPair(DOUBLED, DOUBLED.replace("a + a AS a", "a + a + 0 AS a", 1))
HONEST = QueryPair(f"SELECT id + 1 AS x FROM {TABLE}", f"SELECT 1 + id AS x FROM {TABLE}")


def analysis(*pairs: QueryPair) -> Analysis:
    return Analysis((EmptyTable("mergeplan_table_t", (Column("id", "int"),)),), (), pairs)


@pytest.fixture(scope="module")
def analyzer() -> Iterator[LocalAnalyzer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mergeplan.planner.engine.analysis.PAIR_SECONDS", 45.0)
        analyzer = LocalAnalyzer()
        yield analyzer
        analyzer.close()


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_costly_comparison_is_given_up_and_the_others_are_answered(analyzer: LocalAnalyzer, bomb: str) -> None:
    costly = QueryPair(BOMBS[bomb], BOMBS[bomb].replace("SELECT", "SELECT /* 1 */", 1))

    answers = analyzer.compare_queries(analysis(HONEST, costly, HONEST))

    assert answers is not None
    first, answer, last = answers
    assert first.same and last.same
    if bomb == "nested":  # Spark may master it
        assert answer.same or answer.error or answer.gave_up
    else:
        assert answer.gave_up in (TOO_SLOW, TOO_BIG)


def test_an_analysis_costs_two_processes_at_most(analyzer: LocalAnalyzer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mergeplan.planner.engine.analysis.PAIR_SECONDS", 5.0)

    answers = analyzer.compare_queries(analysis(COSTLY, COSTLY, COSTLY, HONEST))

    assert answers is not None
    assert {answer.gave_up for answer in answers} <= {TOO_SLOW, TOO_BIG}


def test_a_costly_comparison_holds_up_no_other(analyzer: LocalAnalyzer) -> None:
    thread = threading.Thread(target=analyzer.compare_queries, args=(analysis(COSTLY),))
    thread.start()

    answers = analyzer.compare_queries(analysis(HONEST))

    assert answers is not None and answers[0].same
    assert thread.is_alive()
    thread.join(300)
    assert not thread.is_alive()


def test_no_process_and_no_folder_is_left(analyzer: LocalAnalyzer) -> None:
    assert analyzer.compare_queries(analysis(HONEST))
    process = analyzer._idle[-1]

    analyzer.close()

    assert not process.is_alive
    assert not os.path.exists(process._folder)
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(process._java)], capture_output=True, text=True, check=False)
    assert state.stdout.strip()[:1] in ("", "Z")
