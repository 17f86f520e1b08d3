"""What a plan says is unaffected is run on Spark with ANSI off and in other time zones too: `test_soundness` there.

MERGEPLAN_CASES and MERGEPLAN_SEED are as there; each block of cases is run under the next of these settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.plan.change import Change
from mergeplan.planner.semantics.columns import RULED
from mergeplan.planner.semantics.spark.spark_settings import Settings

from .building import external, model, project
from .generating import Case, generate
from .proving.promises import Models, verdicts
from .proving.running import Bench
from .test_soundness import BLOCK, CASES, SEED, judge_cases

pytestmark = pytest.mark.sampled

OTHERS: tuple[Settings, ...] = (
    (("spark.sql.ansi.enabled", "false"),),
    (("spark.sql.session.timeZone", "America/St_Johns"),),
    (("spark.sql.ansi.enabled", "false"), ("spark.sql.session.timeZone", "Pacific/Apia")),
)


@contextmanager
def under(engine: SparkEngine, settings: Settings) -> Iterator[Bench]:
    """A bench whose queries run under these settings."""
    with Bench(engine) as bench:
        try:
            for key, value in settings:
                engine.fetch(f"SET {key} = {value}")
            yield bench
        finally:
            for key, _ in settings:
                engine.fetch(f"RESET {key}")


def compute_models(models: Models, settings: Settings) -> Models:
    return {
        name: project_model if project_model.kind is Kind.EXTERNAL else replace(project_model, settings=settings)
        for name, project_model in models.items()
    }


def case(seed: int, settings: Settings) -> Case:
    random_case = generate(seed)
    return replace(
        random_case,
        before=compute_models(random_case.before, settings),
        after=compute_models(random_case.after, settings),
    )


@pytest.mark.parametrize("block", range(max(CASES // BLOCK // 2, 1)))
def test_what_is_said_to_be_unaffected_holds_under_other_settings(shared_engine: SparkEngine, block: int) -> None:
    settings, first = OTHERS[block % len(OTHERS)], SEED + 100_000 + block * BLOCK

    with under(shared_engine, settings) as bench:
        cases = [case(seed, settings) for seed in range(first, first + BLOCK)]
        answers, failures = judge_cases(bench, cases, verdicts)

    assert not failures, f"{settings}: {failures[0]}"
    if RULED.issuperset(key for key, _ in settings):  # with others every edit of a text is a change: hardly a promise
        assert sum(answer.kept for answer in answers) > 2, f"seeds from {first}: hardly anything was looked at"


def verdicts_without_settings(before: Models, after: Models) -> dict[str, Change] | None:
    """The verdicts of rules that were made for Spark's defaults."""
    return verdicts(compute_models(before, ()), compute_models(after, ()))


def test_the_rules_for_sparks_defaults_are_found_out_without_ansi(shared_engine: SparkEngine) -> None:
    def models(where: str) -> Models:
        typed = model("s.m1", "SELECT id, CAST(flag AS STRING) AS x FROM s.orders")
        read = model("s.m2", f"SELECT id FROM s.m1 WHERE {where}")
        return project(external("s.orders", "id item price flag d"), typed, read)

    one, two = (compute_models(models(where), OTHERS[0]) for where in ("NOT x IN (1, 2)", "NOT (x = 1 OR x = 2)"))
    with under(shared_engine, OTHERS[0]) as bench:
        wrong = judge_cases(bench, [Case(0, one, two, ("spelled otherwise",))], verdicts_without_settings)[1]
        right = judge_cases(bench, [Case(0, one, two, ("spelled otherwise",))], verdicts)[1]

    assert "was said to be equivalent" in wrong[0]
    assert right == []
