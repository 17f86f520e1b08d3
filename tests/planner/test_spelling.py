"""Two texts that mergeplan calls one query are one query to Spark: its analysed plans of them are equal, or those that
its optimizer makes, or a rule of ours says why and the rows are the same.

The parser's tree is what a text is judged by, so it must be Spark's reading of the text. Every construct is written in
several places and edited token by token; what is then called one query is compared. `make prove` takes a sample and
some constructs of each heading (MERGEPLAN_SPELLINGS says how many, MERGEPLAN_SEED which), and Spark's own test queries
where MERGEPLAN_SPARK_QUERIES names their folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from random import Random

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine

from .spelling.constructs import constructs
from .spelling.edits import respelled
from .spelling.plans import Plans, Sameness
from .spelling.scoring import Score, score, structure
from .spelling.spark_queries import FOLDER, query_files
from .spelling.tables import TABLES, create_tables

pytestmark = pytest.mark.prove

EVERY = int(os.environ.get("MERGEPLAN_CASES", "0")) >= 1000
SEED = int(os.environ.get("MERGEPLAN_SEED", "1"))
PER_HEADING = int(os.environ.get("MERGEPLAN_SPELLINGS", "6"))  # constructs of a heading that are edited
HEADINGS = tuple(dict.fromkeys(each.heading for each in constructs()))
PARENTS = {name: table.parent for name, table in TABLES.items()}


@pytest.fixture
def plans(engine: SparkEngine) -> Plans:
    create_tables(engine)
    return Plans(engine)


def edited(texts: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The texts, each followed by its edits."""
    for heading, text in texts:
        yield heading, text
        yield from ((heading, other) for other in respelled(text))


def show(result: Score) -> None:
    """Print the score, which `pytest -s` shows."""
    sys.stdout.write(f"\n{result}\n")


def sample(number: int, places: int = 1) -> list[tuple[str, str]]:
    """So many constructs, other ones for each seed."""
    every = [(each.heading, each.sql) for each in constructs(places)]
    return Random(SEED).sample(every, number)  # noqa: S311


def test_texts_that_are_called_one_query_are_one_to_spark(plans: Plans) -> None:
    result = score(edited(sample(12)), PARENTS, plans)

    assert not result.doubtful, result
    assert result.pairs[Sameness.PARSED] > 50
    assert result.pairs[Sameness.ANALYSED] > 10


@pytest.mark.parametrize("heading", HEADINGS)
def test_the_spellings_of_a_construct_are_read_as_spark_reads_them(plans: Plans, heading: str) -> None:
    texts = [(each.heading, each.sql) for each in constructs() if each.heading == heading]
    chosen = Random(SEED).sample(texts, min(len(texts), PER_HEADING))  # noqa: S311

    result = score((*texts, *edited(chosen)), PARENTS, plans)

    show(result)
    assert not result.doubtful, result


def test_the_parsers_tree_says_what_the_text_says(plans: Plans) -> None:
    texts = [(each.heading, each.sql) for each in constructs(9)] if EVERY else sample(100)

    result = structure(texts, PARENTS, plans)

    show(result)
    assert not result.doubtful, result
    assert result.pairs[Sameness.PARSED] > 30


@pytest.mark.skipif(not FOLDER, reason="MERGEPLAN_SPARK_QUERIES names no folder of Spark's test queries")
def test_sparks_own_queries_are_read_as_spark_reads_them(engine: SparkEngine) -> None:
    plans, result = Plans(engine), Score()

    for file in query_files(engine):
        texts = [(file.name, query) for query in file.queries]
        result += structure(texts, file.parents, plans)
        plans.forget()

    show(result)
    assert not result.doubtful, result
    assert result.pairs[Sameness.PARSED] > 1000
