"""The cases of the case book, planned and run: does the plan say what is right, and do the rows agree?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mergeplan.planner.errors import ProjectErrors
from mergeplan.planner.plan.change import Category, Change

from .building import change_of
from .casebook import Case, tables_recomputed
from .sample import SOURCES, Content, Fetch, contents, query_of

KEEPS = (Category.EQUIVALENT, Category.METADATA, Category.INDIRECT_NON_BREAKING)


QUICK = (
    ("spark.sql.adaptive.enabled", "false"),
    ("spark.sql.codegen.wholeStage", "false"),
    ("spark.sql.codegen.factoryMode", "NO_CODEGEN"),
)  # for many small queries: to compile one takes longer than to answer it
SAME = Content("", ())  # of a model whose query and whose parents' rows are as before: it is not run


@dataclass(frozen=True)
class Held:
    """What each model holds over the sample rows, by name, before and after an edit."""

    before: dict[str, Content] = field(default_factory=dict)
    after: dict[str, Content] = field(default_factory=dict)

    def same(self, name: str) -> bool:
        """True when the model's table may stay as it is."""
        return self.before[name].same(self.after[name])


def run(cases: Collection[Case], fetch: Fetch) -> dict[str, Held]:
    """Every case's models, run on Spark, parents first; models that came, are gone or are volatile are left out."""
    held = {case.name: Held() for case in cases}
    while ready := [(case, name) for case in cases for name in _ready(case, held[case.name])]:
        asked = {}
        for case, name in ready:
            if _is_settled(case, name, held[case.name]):
                held[case.name].before[name] = held[case.name].after[name] = SAME
            else:
                asked[case.name, name] = query_of(case.before, name), query_of(case.after, name)
        query_rows = contents([query for both in asked.values() for query in both], fetch)
        for (case_name, name), (before, after) in asked.items():
            held[case_name].before[name], held[case_name].after[name] = query_rows[before], query_rows[after]
    return held


def misjudgement(case: Case, changes: Mapping[str, Change]) -> str:
    """How a plan differs from what is right, in one line; '' when it does not."""
    recomputed = tables_recomputed(changes)
    said = []
    if missing := case.recomputed - recomputed:
        said.append(f"UNSOUND, keeps {_join_names(missing)}")
    if extra := recomputed - case.recomputed:
        said.append(f"recomputes {_join_names(extra)} too much")
    for name, category in case.category.items():
        change = changes.get(name)
        if change is None or change.category is not category:
            said.append(f"{name} is {change.category if change else 'untouched'} and not {category}")
    return "; ".join([*said, *_columns_misjudged(case, changes)])


def broken_promises(case: Case, held: Held) -> list[str]:
    """What a plan for the case says is as before and is not, a line each."""
    try:
        changes = change_of(case.before, case.after)
    except ProjectErrors:
        return []  # a plan that is refused promises nothing
    return [
        f"{case.name}: {name} is {_decision_text(changes.get(name))}, yet {', '.join(moved)} moved"
        for name in held.before
        if (moved := _changed_columns(changes.get(name), held.before[name], held.after[name]))
    ]


def contradictions(case: Case, held: Held) -> list[str]:
    """Where the rows contradict what the case calls right, a line each."""
    problems = []
    for name in held.before:
        must = name in case.recomputed
        if not must and not held.same(name) and case.after[name].kind.is_stored:
            problems.append(f"{case.name}: {name} differs and is not in `recomputed`")
        if must and held.same(name) and name not in case.data_equal:
            problems.append(f"{case.name}: {name} is in `recomputed` and does not differ")
        if name in case.data_equal and not held.same(name):
            problems.append(f"{case.name}: {name} differs, so `data_equal` is wrong")
    return problems


def _ready(case: Case, held: Held) -> list[str]:
    """The models that are to be run and whose parents have been."""
    wanted = case.before.keys() & case.after.keys() - SOURCES.keys() - case.volatile
    return sorted(
        name for name in wanted - held.before.keys() if wanted & {*case.after[name].depends_on} <= held.before.keys()
    )


def _is_settled(case: Case, name: str, held: Held) -> bool:
    """True when the same query reads the same rows; the text of an embedded query is part of its readers'."""
    read = (parent for parent in case.after[name].depends_on if parent not in SOURCES)
    before, after = case.before[name], case.after[name]
    return (before.sql, before.columns) == (after.sql, after.columns) and all(
        parent in held.before and held.same(parent) and not case.after[parent].kind.is_embedded for parent in read
    )


def _changed_columns(change: Change | None, before: Content, after: Content) -> list[str]:
    """The columns that a change does not own to and that hold other rows."""
    if not before.rows and not after.rows:
        return []
    if change is None or change.category in KEEPS:
        return [] if before.same(after) else ["rows or types"]
    if change.columns.every:
        return []
    kept = before.columns - change.columns.altered - change.columns.removed
    if not before.rows or not after.rows or before.only(kept) == after.only(kept):
        return [] if before.rows and after.rows else ["rows"]
    return sorted(c for c in kept if before.only({c}) != after.only({c})) or ["rows"]


def _columns_misjudged(case: Case, changes: Mapping[str, Change]) -> Iterator[str]:
    if case.columns is None:
        return
    for name in case.category:
        if (change := changes.get(name)) and not change.columns.every:
            columns = change.columns.added, change.columns.altered, change.columns.removed
            for verb, told, right in zip(("added", "altered", "removed"), columns, case.columns, strict=True):
                if told != right:
                    yield f"{name} has {verb} {_join_names(told)} and not {_join_names(right)}"


def _decision_text(change: Change | None) -> str:
    return f"{change.category} by {change.rule}" if change else "untouched"


def _join_names(names: Iterable[str]) -> str:
    return " ".join(sorted(names)) or "nothing"
