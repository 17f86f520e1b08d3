"""Two texts that mergeplan calls one query are one query to Spark: its analysed plans of them are equal, or those that
its optimizer makes, or rules of ours make one tree of both and the rows are the same.

The parser's tree is what a text is judged by, so it must be Spark's reading of the text. Every construct is written in
several places and edited token by token; what is then called one query is compared, and so is every query with and
without the optional pieces of Spark's grammar (`options.sql`). `make prove` takes a sample and some constructs of each
heading (MERGEPLAN_SPELLINGS says how many, MERGEPLAN_SEED which), and Spark's own test queries where
MERGEPLAN_SPARK_QUERIES names their folder. docs/explanation/equivalence.md has the score; `pytest -s` prints its rows.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from random import Random

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.semantics.parent import Parent

from .casebook import cases
from .sample import SOURCES
from .spelling.constructs import constructs
from .spelling.edits import respell
from .spelling.options import optional_queries
from .spelling.page import rules_of_page, score_of_page
from .spelling.plans import Plans, Sameness
from .spelling.rules import rule
from .spelling.scoring import Score, score, structure
from .spelling.spark_queries import FOLDER, query_files
from .spelling.tables import TABLES, create_tables

pytestmark = pytest.mark.prove

SEED = int(os.environ.get("MERGEPLAN_SEED", "1"))
PER_HEADING = int(os.environ.get("MERGEPLAN_SPELLINGS", "6"))  # constructs of a heading that are edited
HEADINGS = tuple(dict.fromkeys(construct.heading for construct in constructs()))
PARENTS = {name: table.parent for name, table in TABLES.items()}


@pytest.fixture
def plans(engine: SparkEngine) -> Plans:
    create_tables(engine)
    return Plans(engine)


def edit_texts(texts: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The texts, each followed by its edits."""
    for heading, text in texts:
        yield heading, text
        yield from ((heading, other) for other in respell(text))


def assert_as_documented(name: str, result: Score) -> None:
    """Fail where a pair is wrong, or where much less is compared, or more is excused, than the page says."""
    sys.stdout.write(f"\n{result.row(name)}\n{result}\n")
    assert not result.doubtful, result
    if SEED == 1 and PER_HEADING == 6:
        assert result.pairs_accepted >= score_of_page().get(name, 0) * 9 // 10, result.row(name)
    assert {part for rules in result.rules for part in rules.split("; ")} <= rules_of_page()


def sample(number: int, places: int = 1) -> list[tuple[str, str]]:
    """So many constructs, other ones for each seed."""
    every = [(construct.heading, construct.sql) for construct in constructs(places)]
    return Random(SEED).sample(every, number)  # noqa: S311


def test_texts_that_are_called_one_query_are_one_to_spark(plans: Plans) -> None:
    result = score(edit_texts(sample(12)), PARENTS, plans)

    assert not result.doubtful, result
    assert result.pairs[Sameness.PARSED] > 50
    assert result.pairs[Sameness.ANALYSED] > 10


@pytest.mark.parametrize("heading", HEADINGS)
def test_the_spellings_of_a_construct_are_read_as_spark_reads_them(plans: Plans, heading: str) -> None:
    texts = [(construct.heading, construct.sql) for construct in constructs() if construct.heading == heading]
    chosen = Random(SEED).sample(texts, min(len(texts), PER_HEADING))  # noqa: S311

    result = score((*texts, *edit_texts(chosen)), PARENTS, plans)

    assert_as_documented(heading, result)


OPTIONS = tuple(optional_queries())


@pytest.mark.parametrize("heading", tuple(dict.fromkeys(heading for heading, *_ in OPTIONS)))
def test_no_optional_piece_of_the_grammar_is_overlooked(plans: Plans, heading: str) -> None:
    texts = [(name, query) for name, _, queries in OPTIONS for query in queries if name == heading]

    result = score(texts, PARENTS, plans)

    sys.stdout.write(f"\n{result}\n")
    assert not [pair for pair in result.doubtful if pair.sameness is Sameness.OTHER], result


OTHER_QUERIES = [
    ("SELECT id - n AS v FROM s.t", "SELECT n - id AS v FROM s.t"),
    ("SELECT id FROM s.t WHERE b AND (n = 1 OR x = 1)", "SELECT id FROM s.t WHERE (b AND n = 1) OR x = 1"),
    ("SELECT id FROM s.t SEMI JOIN s.o ON t.id = o.n", "SELECT id FROM s.t ANTI JOIN s.o ON t.id = o.n"),
    ("SELECT id FROM s.t SEMI JOIN s.o ON t.id = o.n", "SELECT id FROM s.t JOIN s.o ON t.id = o.n"),
    ("SELECT t.id FROM s.t LEFT JOIN s.o", "SELECT t.id FROM s.t JOIN s.o ON TRUE"),
    ("SELECT t.id FROM s.t LEFT JOIN s.o", "SELECT t.id FROM s.t LEFT JOIN s.o ON FALSE"),
    ("SELECT id, EXPLODE(arr) AS e FROM s.t", "SELECT id, e FROM s.t LATERAL VIEW OUTER EXPLODE(arr) AS e"),
    ("SELECT id, EXPLODE(arr) AS e FROM s.t", "SELECT id, e FROM s.t LATERAL VIEW EXPLODE(words) AS e"),
    ("SELECT id, POSEXPLODE(arr) AS (p, q) FROM s.t", "SELECT id, q, p FROM s.t LATERAL VIEW POSEXPLODE(arr) AS p, q"),
    ("SELECT TO_JSON(STRUCT(n)) AS v FROM s.t", "SELECT TO_JSON(STRUCT(N)) AS v FROM s.t"),
    ("SELECT id FROM s.t ORDER BY n LIMIT 1", "SELECT id FROM s.t ORDER BY x LIMIT 1"),
    ("SELECT LOCATE(s, u) AS v FROM s.t", "SELECT INSTR(s, u) AS v FROM s.t"),
]


@pytest.mark.parametrize(("one", "other"), OTHER_QUERIES)
def test_no_rule_excuses_a_pair_of_two_queries(engine: SparkEngine, one: str, other: str) -> None:
    first, second = Plans(engine).parse(one), Plans(engine).parse(other)
    assert first
    assert second

    assert rule(first.json, second.json) == ""


def test_the_case_book_is_read_as_spark_reads_it(engine: SparkEngine) -> None:
    engine.fetch("CREATE SCHEMA src")
    for name, source in SOURCES.items():
        engine.fetch(f"CREATE TABLE {name} USING parquet AS {source.sql}")
    parents = {
        name: Parent(tuple(c for c, _ in source.columns), types=source.columns) for name, source in SOURCES.items()
    }
    models = [model for case in cases() for model in (*case.before.values(), *case.after.values())]
    texts = {
        model.sql: "case book" for model in models if {*model.depends_on} <= SOURCES.keys() and "@" not in model.sql
    }

    result = structure([(heading, text) for text, heading in texts.items() if text], parents, Plans(engine))

    assert_as_documented("the case book", result)


def test_the_parsers_tree_says_what_the_text_says(plans: Plans) -> None:
    result = structure([(construct.heading, construct.sql) for construct in constructs()], PARENTS, plans)

    assert_as_documented("all constructs, written out", result)


@pytest.mark.skipif(not FOLDER, reason="MERGEPLAN_SPARK_QUERIES names no folder of Spark's test queries")
def test_sparks_own_queries_are_read_as_spark_reads_them(engine: SparkEngine) -> None:
    plans, result = Plans(engine), Score()

    for file in query_files(engine):
        texts = [(file.name, query) for query in file.queries]
        result += structure(texts, file.parents, plans)
        plans.forget()

    assert_as_documented("Spark's own queries, written out", result)
