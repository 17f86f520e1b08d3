"""The case book holds: each edit gets the verdict that is right over any rows, and Spark's rows agree with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectErrors
from mergeplan.planner.snapshot.environment import Environment

from . import casebook
from .building import make_plan, promote
from .casebook import Case, cases
from .caserun import QUICK, broken_promises, contradictions, misjudgement, run
from .plan.reason_claims import Claim
from .plan.reason_rules import false_claims

pytestmark = pytest.mark.sampled

THEMES = sorted({case.theme for case in cases()})
# Every case is judged each time; a few are run, and all of them by `make prove`.
RUN = cases() if "MERGEPLAN_CASES" in os.environ else cases()[::24]


@pytest.fixture
def quick(shared_engine: SparkEngine) -> Iterator[SparkEngine]:
    """A Spark that compiles nothing: its many small queries take longer to compile than to answer."""
    spark = SparkSession.getActiveSession()
    assert spark is not None
    before = {key: spark.conf.get(key, None) for key, _ in QUICK}
    for key, value in QUICK:
        spark.conf.set(key, value)
    yield shared_engine
    for key, was in before.items():
        if was is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, was)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_an_edit_gets_the_smallest_sound_verdict(case: Case) -> None:
    false = list[str]()
    try:
        prod, loaded = promote(case.before)
        plan = make_plan(case.after, Environment("dev"), prod, loaded)
        changes = {change.name: change for change in plan.changes}
        said = misjudgement(case, changes)
        snapshots = {**prod.snapshots, **plan.new.snapshots}
        false = [line for change in plan.changes for line in false_claims(Claim(change, changes, snapshots))]
    except ProjectErrors as error:
        said = f"is refused: {error.errors[0].message}"

    if case.not_yet and not said:
        pytest.fail(f"{case.name}: is minimal now, so take its `not_yet` out", pytrace=False)
    if said and (not case.not_yet or "UNSOUND" in said):
        pytest.fail(f"{case.theme}, {case.name}: {said}", pytrace=False)
    assert false == []


@pytest.mark.parametrize("theme", THEMES)
def test_what_runs_agrees_with_the_plan_and_with_the_case(quick: SparkEngine, theme: str) -> None:
    chosen = [case for case in RUN if case.theme == theme]

    held = run(chosen, lambda sql: quick.fetch(sql).rows)

    assert [line for case in chosen for line in broken_promises(case, held[case.name])] == []
    assert [line for case in chosen for line in contradictions(case, held[case.name])] == []


def test_the_book_is_thick() -> None:
    assert len(cases()) > 270


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cases: []\nmodels: {}", "unknown \\['models'\\]"),
        ("cases: [{name: a, before: SELECT 1 AS a, after: SELECT 2 AS a, expect: breaking}]", "unknown \\['expect'\\]"),
        ("cases: [{name: a, before: SELECT 1 AS a, after: SELECT 1 AS a, category: {}, recomputed: ''}]", "nothing is"),
        ("cases: [{name: a, before: SELECT 1 AS a, after: SELECT 2 AS a, category: {}, recomputed: x}]", "there is no"),
        ("cases: [{name: a, name: b}]", "twice"),
    ],
)
def test_a_case_that_is_not_as_it_must_be_is_an_error(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(text)

    with pytest.raises(ValueError, match=told):
        casebook.read(path)
