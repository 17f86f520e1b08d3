"""What a plan says is unaffected holds the same rows where a text says more than a parser's tree.

As in `test_soundness`, but models are read as files and run as their texts: names in back-ticks, FROM before SELECT,
keys of a grouping with a comma or without. MERGEPLAN_CASES and MERGEPLAN_SEED are as there.
"""

from __future__ import annotations

import random

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectError

from .building import external, project
from .generating import Case
from .generating.graphs import Node
from .generating.words import generate_words, move_from, read_file
from .proving.answers import Answer
from .proving.promises import proof, verdicts
from .proving.running import Bench
from .test_soundness import BLOCK, CASES, SEED, too_trusting

pytestmark = pytest.mark.sampled


def generate_readable(seed: int) -> list[Case]:
    """The case of a seed, unless the project's reader refuses a text."""
    try:
        return [generate_words(seed)]
    except ProjectError:
        return []


def judge_texts(bench: Bench, cases: list[Case]) -> tuple[list[Answer], list[str]]:
    """What became of the cases, and each broken promise with the texts around it."""
    judged = [(case, changes) for case in cases if (changes := verdicts(case.before, case.after)) is not None]
    answers = bench.together(proof(case.before, case.after, changes) for case, changes in judged)
    failures = [
        f"seed {case.seed} (MERGEPLAN_SEED), {', '.join(case.edits)}\n{broken}\n{write_texts(case)}"
        for (case, _), answer in zip(judged, answers, strict=True)
        for broken in answer.broken
    ]
    return answers, failures


def write_texts(case: Case) -> str:
    models = (name for name, model in case.after.items() if model.written.text)
    return "\n".join(
        f"{name}\n  was {case.before[name].written.text}\n  is  {case.after[name].written.text}" for name in models
    )


@pytest.mark.parametrize("block", range(max(CASES // BLOCK, 1)))
def test_what_is_said_to_be_unaffected_holds_the_same_rows_in_other_words(
    shared_engine: SparkEngine, block: int
) -> None:
    first = SEED + block * BLOCK
    cases = [case for seed in range(first, first + BLOCK) for case in generate_readable(seed)]

    with Bench(shared_engine) as bench:
        answers, failures = judge_texts(bench, cases)

    assert not failures, failures[0]
    assert len(cases) > BLOCK * 0.7, f"seeds from {first}: hardly any text is read"
    assert sum(answer.kept for answer in answers) > 2, f"seeds from {first}: hardly anything was looked at"


WRONG = [
    ("SELECT id, flag, COUNT(*) AS n FROM s.orders GROUP BY id, flag GROUPING SETS ((id), (flag))",
     "SELECT id, flag, COUNT(*) AS n FROM s.orders GROUP BY id, flag, GROUPING SETS ((id), (flag))"),
    ("FROM s.orders SELECT id AS `a-b` WHERE id > 1", "FROM s.orders SELECT id AS `a-b` WHERE id > 2"),
]  # fmt: skip


@pytest.mark.prove
@pytest.mark.parametrize(("before", "after"), WRONG)
def test_a_difference_that_only_the_text_shows_is_noticed(
    shared_engine: SparkEngine, before: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.verdicts", too_trusting)
    orders = external("s.orders", "id item price flag d")
    sides = [project(orders, read_file(Node("s.m1", "", {}), text, {})) for text in (before, after)]

    with Bench(shared_engine) as bench:
        failures = judge_texts(bench, [Case(0, sides[0], sides[1], ("reworded",))])[1]

    assert "was said to be equivalent" in failures[0]


def test_from_moves_before_select() -> None:
    text = "SELECT a, (b IS DISTINCT FROM 1) AS c FROM s.t AS t LEFT JOIN s.u ON t.a = u.a WHERE a > 1 ORDER BY a"

    moved = move_from(random.Random(1), text)  # noqa: S311 # reproducible, not secret

    assert moved == (
        "FROM s.t AS t LEFT JOIN s.u ON t.a = u.a SELECT a, (b IS DISTINCT FROM 1) AS c WHERE a > 1 ORDER BY a"
    )
