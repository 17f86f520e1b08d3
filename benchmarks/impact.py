"""How much plans recompute: ours, the least that is sound, and everything downstream of what was edited.

make bench-impact                          the case book, and 300 generated edits
python -m benchmarks.impact 1000           as many generated edits
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.engine import SparkEngine, open_engine
from mergeplan.planner.errors import ProjectErrors
from mergeplan.planner.model.model import Model
from tests.planner.building import change_of
from tests.planner.casebook import Case, cases, downstream, tables_recomputed
from tests.planner.caserun import QUICK, broken_promises, run
from tests.planner.generating import generate
from tests.planner.proving.promises import telling_apart, verdicts
from tests.planner.proving.running import Bench
from tests.planner.sample import Fetch

SMALL = (("spark.driver.memory", "900m"), ("spark.sql.shuffle.partitions", "2"), ("spark.default.parallelism", "2"))
BLOCK = 60  # edits that are run together


@dataclass(frozen=True)
class Score:
    """One edit: the models that are recomputed by us, by a tool that compares texts, and at least; what was unsound."""

    theme: str
    name: str
    ours: frozenset[str]
    texts: frozenset[str]
    least: frozenset[str]
    unsound: tuple[str, ...] = ()
    refused: bool = False

    @property
    def excess(self) -> frozenset[str]:
        return self.ours - self.least


def book(fetch: Fetch) -> list[Score]:
    """A score for each case of the case book; the least is what the case says."""
    held = run(cases(), fetch)
    return [score_case(case, case.recomputed, tuple(broken_promises(case, held[case.name]))) for case in cases()]


def score_generated(count: int, engine: SparkEngine) -> list[Score]:
    """A score for each generated edit; the least is what differs when it is run. Models that Spark refuses are left
    out of all three sums."""
    scores: list[Score] = []
    with Bench(engine) as bench:
        for first in range(1, count + 1, BLOCK):
            made = [generate(seed) for seed in range(first, min(first + BLOCK, count + 1))]
            told = [
                (candidate, changes)
                for candidate in made
                if (changes := verdicts(candidate.before, candidate.after)) is not None
            ]
            same: list[dict[str, bool]] = [{} for _ in told]
            asked = (
                telling_apart(c.before, c.after, v, same_by_name)
                for (c, v), same_by_name in zip(told, same, strict=True)
            )
            answers = bench.together(asked)
            for (made_case, _), same_rows, answer in zip(told, same, answers, strict=True):
                case = _as_case(made_case.seed, made_case.before, made_case.after)
                scores.append(restrict_score(case, same_rows, tuple(map(str, answer.broken))))
    return scores


def restrict_score(case: Case, same: Mapping[str, bool], unsound: tuple[str, ...]) -> Score:
    stored = {name for name in same if case.after[name].kind.is_stored}
    score = score_case(case, frozenset(name for name in stored if not same[name]), unsound)
    return replace(score, ours=score.ours & stored, texts=score.texts & stored)


def table(scores: list[Score]) -> str:
    """A line for each theme and one for all."""
    themes = sorted({score.theme for score in scores})
    lines = [f"{'':<18}{'cases':>7}{'ours':>7}{'least':>7}{'by text':>9}{'ours/least':>12}{'unsound':>9}{'refused':>9}"]
    lines += [_line(theme, [score for score in scores if score.theme == theme]) for theme in themes]
    return "\n".join([*lines, _line("all", scores)])


def main(count: int) -> None:
    """Print the tables, and each case in which we recompute too much or promise too much."""
    with tempfile.TemporaryDirectory() as home:
        connection = Connection(conf=SMALL + QUICK, master="local[2]")
        engine = open_engine(connection, Path(home) / ".mergeplan", "metadata")
        try:
            scores = book(lambda sql: engine.fetch(sql).rows)
            print("Models recomputed over the case book\n" + table(scores))
            scores += score_generated(count, engine)
            print("\n...and over generated edits\n" + _line("generated", scores[len(cases()) :]))
        finally:
            engine.close()
    for score in scores:
        for line in score.unsound:
            print(f"UNSOUND  {line}")
        if missing := score.least - score.ours:
            print(f"TOO LITTLE  {score.theme}, {score.name}: {' '.join(sorted(missing))}")
        if score.excess and score.theme != "generated":
            print(f"too much  {score.theme}, {score.name}: {' '.join(sorted(score.excess))}")


def score_case(case: Case, least: frozenset[str], unsound: tuple[str, ...]) -> Score:
    try:
        ours, refused = tables_recomputed(change_of(case.before, case.after)), False
    except ProjectErrors:
        ours, refused = least, True
    return Score(case.theme, case.name, ours, downstream(case), least, unsound, refused)


def _as_case(seed: int, before: Mapping[str, Model], after: Mapping[str, Model]) -> Case:
    empty: frozenset[str] = frozenset()
    return Case(f"seed {seed}", "generated", dict(before), dict(after), {}, empty, None, empty, {}, "")


def _line(name: str, scores: list[Score]) -> str:
    ours, least, texts = (sum(len(getattr(s, which)) for s in scores) for which in ("ours", "least", "texts"))
    ratio = ours / least if least else 1.0 if not ours else float("inf")
    unsound = sum(bool(score.unsound or score.least - score.ours) for score in scores)
    refused = sum(score.refused for score in scores)
    return f"{name:<18}{len(scores):>7}{ours:>7}{least:>7}{texts:>9}{ratio:>12.2f}{unsound:>9}{refused:>9}"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
