"""What a plan says is unaffected is run on Spark before and after the edit, and must hold the same rows.

A wrong "keeps its table" is the worst defect there is, so the rules are not only read but run: random projects over
small and nasty data, random edits of them: the same in other words, nearly the same, more columns, something else. A
failure is made as small as can be and printed with its seed. MERGEPLAN_CASES says how many (`make prove` runs 2,000),
MERGEPLAN_SEED where they begin.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.plan.change import Category, Change, Columns

from .building import external, model, project
from .generating import Case, generate
from .proving.answers import Answer
from .proving.promises import Models, proof, verdicts
from .proving.running import Bench
from .proving.shrinking import Failure, Judge, shrunk

pytestmark = pytest.mark.sampled

CASES = int(os.environ.get("MERGEPLAN_CASES", "25"))
SEED = int(os.environ.get("MERGEPLAN_SEED", "1"))
BLOCK = 25


def judge_cases(bench: Bench, cases: list[Case], judge: Judge) -> tuple[list[Answer], list[str]]:
    """What became of the cases, and the first failure among them, made small."""
    told = [(case, changes) for case in cases if (changes := judge(case.before, case.after)) is not None]
    answers = bench.together(proof(case.before, case.after, changes) for case, changes in told)
    for (case, _), answer in zip(told, answers, strict=True):
        for broken in answer.broken[:1]:
            small = shrunk(bench, Failure(case.before, case.after, broken), judge)
            return answers, [f"seed {case.seed} (MERGEPLAN_SEED), edits {', '.join(case.edits)}\n{small}"]
    return answers, []


@pytest.mark.parametrize("block", range(max(CASES // BLOCK, 1)))
def test_what_is_said_to_be_unaffected_holds_the_same_rows(shared_engine: SparkEngine, block: int) -> None:
    first = SEED + block * BLOCK

    with Bench(shared_engine) as bench:
        answers, failures = judge_cases(bench, [generate(seed) for seed in range(first, first + BLOCK)], verdicts)

    assert not failures, failures[0]
    kept, refused = sum(answer.kept for answer in answers), sum(answer.refused for answer in answers)
    assert kept > 2, f"seeds from {first}: hardly anything was looked at"
    assert refused <= 10 + kept // 2, f"seeds from {first}: Spark refused {refused} of {kept + refused}"


def too_trusting(before: Models, after: Models) -> dict[str, Change]:
    """Verdicts that call every change equivalent."""
    changes = verdicts(before, after) or {}
    return {
        name: replace(change, category=Category.EQUIVALENT, recomputed=False, columns=Columns())
        for name, change in changes.items()
    }


@pytest.mark.prove
def test_a_wrong_verdict_is_noticed_and_the_case_made_small(shared_engine: SparkEngine) -> None:
    def models(where: str) -> Models:
        rest = "FROM s.orders AS o LEFT JOIN s.items AS i ON o.item = i.item"
        m1 = model("s.m1", f"SELECT o.id, UPPER(o.flag) AS up, COALESCE(i.name, 'z') AS name {rest}{where}")
        m2 = model("s.m2", "WITH c AS (SELECT * FROM s.m1) SELECT id, COUNT(*) AS n, MAX(up) AS up FROM c GROUP BY id")
        return project(external("s.orders", "id item price flag d"), external("s.items", "item name price ok"), m1, m2)

    before, after = models(""), models(" WHERE o.id > 2 AND NOT o.flag IS NULL")
    with Bench(shared_engine) as bench:
        true = judge_cases(bench, [Case(0, before, after, ("filtered",))], verdicts)
        wrong = judge_cases(bench, [Case(0, before, after, ("filtered",))], too_trusting)

    assert true[1] == []
    (text,) = wrong[1]
    assert "was said to be equivalent" in text
    assert "WHERE" in text
    assert not {"s.m2", "UPPER", "COALESCE"} & set(re.findall(r"[\w.]+", text))  # the failure needs none of them


@pytest.mark.parametrize("seed", range(3))
def test_a_seed_always_makes_the_same_case(seed: int) -> None:
    one, two = generate(seed), generate(seed)

    assert (one.edits, one.before, one.after) == (two.edits, two.before, two.after)
