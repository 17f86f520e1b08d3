"""Each reason is true: every sentence is checked against the plan's data and the text of the queries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from mergeplan.planner.errors import ProjectErrors
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model, PythonCode, Seed
from mergeplan.planner.plan.build import Plan, build_run
from mergeplan.planner.plan.change import Adoption, Category
from mergeplan.planner.plan.forward_only import ForwardOnly
from mergeplan.planner.plan.restatement import Past
from mergeplan.planner.plan.restatement_plan import build_restatement
from mergeplan.planner.plan.schedule import Loaded, Window
from mergeplan.planner.semantics.two_forms import join_forms
from mergeplan.planner.snapshot.environment import Environment
from tests.planner.building import NOW, day, external, make_plan, model, project, promote
from tests.planner.casebook import cases
from tests.planner.plan.reason_claims import Claim
from tests.planner.plan.reason_facts import FACTS
from tests.planner.plan.reason_rules import OF_RULE, false_claims

RAW = external("s.raw", "id item_id price d")
PARENT = "SELECT id, item_id, price, d FROM s.raw"
RANGED = {"kind": Kind.INCREMENTAL_BY_TIME_RANGE, "time_column": "d", "start": day("2026-01-01")}
DAYS = f"{PARENT} WHERE d BETWEEN @start_ds AND @end_ds"
Edit = tuple[dict[str, Model], dict[str, Model]]


def two_forms(first: str = "true", later: str = "true") -> dict[str, Model]:
    sql = (
        join_forms(f"{PARENT} WHERE {first}", f"{PARENT} WHERE {later}", "s.t").replace("(\n", "(").replace("\n)", ")")
    )
    kept = model("s.t", sql.replace("\n", " "), Kind.INCREMENTAL_BY_UNIQUE_KEY, unique_key=("id",), reads_itself=True)
    return project(RAW, replace(kept, depends_on=("s.raw",)))


def two(parent: str = PARENT, child: str = "SELECT id FROM s.parent", **fields: object) -> dict[str, Model]:
    return project(RAW, model("s.parent", parent, **fields), model("s.child", child))


def seed_models(digest: str, **fields: object) -> dict[str, Model]:
    seed = Seed("seeds/s.csv", digest, ("id",), rows=1, cells=(("id", digest),))
    return project(
        model("s.seed", kind=Kind.SEED, columns="id", seed=seed, **fields), model("s.child", "SELECT id FROM s.seed")
    )


def code_models(digest: str) -> dict[str, Model]:
    code = model("s.code", columns="id", python=PythonCode("models/code.py", "run", digest))
    return project(RAW, replace(code, depends_on=("s.raw",)), model("s.child", "SELECT id FROM s.code"))


# What the case book has no file for: settings, files, code, and an author's own edit under a parent that changes.
EDITS: Mapping[str, Edit] = {
    "a kind": (two(), two(kind=Kind.VIEW)),
    "a kind under a filtered parent": (
        two() | project(model("s.child", "SELECT id FROM s.parent")),
        two(f"{PARENT} WHERE id > 1") | project(model("s.child", "SELECT id FROM s.parent", Kind.VIEW)),
    ),
    "the order of columns under a star": (
        two(child="SELECT * FROM s.parent"),
        two("SELECT id, price, item_id, d FROM s.raw", "SELECT * FROM s.parent"),
    ),
    "the cells of a seed": (seed_models("one"), seed_models("two")),
    "the format of a seed": (seed_models("one"), seed_models("one", storage_format="orc")),
    "a format": (two(), two(storage_format="orc")),
    "a format and the same query": (two(), two(PARENT.replace("price", "(price)"), storage_format="orc")),
    "a format under a filtered parent": (
        two(),
        two(f"{PARENT} WHERE id > 1")
        | project(model("s.child", "SELECT id FROM s.parent", storage_format="orc")),
    ),
    "an owner": (two(), two(owner="ann")),
    "an owner under a filtered parent": (
        two(),
        two(f"{PARENT} WHERE id > 1") | project(model("s.child", "SELECT id FROM s.parent", owner="ann")),
    ),
    "a declared column and the query": (
        project(RAW, model("s.parent", "SELECT id FROM s.raw", columns="id")),
        project(RAW, model("s.parent", "SELECT id, d FROM s.raw", columns="id d")),
    ),
    "a setting of Spark": (two(), two(settings=(("spark.sql.ansi.enabled", "false"),))),
    "code": (code_models("one"), code_models("two")),
    "the later form": (two_forms(), two_forms(later="price > 1")),
    "the first form": (two_forms(), two_forms(first="price > 1")),
    "both forms": (two_forms(), two_forms("price > 1", "price > 1")),
    "an aggregate beside a parent that gains a column": (
        two(child="SELECT COUNT(DISTINCT id) AS n FROM s.parent"),
        two(PARENT.replace("d FROM", "d, 1 AS extra FROM"), "SELECT COUNT(id) AS n FROM s.parent"),
    ),
    "a filter under a parent that is filtered": (
        two(),
        two(f"{PARENT} WHERE price > 0", "SELECT id FROM s.parent WHERE id > 1"),
    ),
    "a column under a parent that is filtered": (
        two(),
        two(f"{PARENT} WHERE price > 0", "SELECT id, d FROM s.parent"),
    ),
    "a column under a parent whose read column is altered": (
        two(child="SELECT price AS p FROM s.parent"),
        two(PARENT.replace("price", "price * 2 AS price"), "SELECT price AS p, d FROM s.parent"),
    ),
    "a child that stops reading what goes": (
        two(child="SELECT id, price FROM s.parent"),
        two("SELECT id, item_id, d FROM s.raw", "SELECT id, 0 AS price FROM s.parent"),
    ),
    "a model that begins to read a new one": (
        two(),
        two(child="SELECT p.id FROM s.parent AS p JOIN s.new AS n ON p.id = n.id")
        | project(model("s.new", "SELECT id FROM s.raw")),
    ),
    "a table that becomes a model": (
        project(RAW, external("s.out", "id"), model("s.child", "SELECT id FROM s.out")),
        project(RAW, model("s.out", "SELECT id FROM s.raw"), model("s.child", "SELECT id FROM s.out")),
    ),
    "a window where a key is known": (
        two("SELECT id, COUNT(*) AS n FROM s.raw GROUP BY id", "SELECT id, n FROM s.parent"),
        two(
            "SELECT id, COUNT(*) AS n FROM s.raw GROUP BY id",
            "SELECT id, n FROM s.parent QUALIFY ROW_NUMBER() OVER (ORDER BY id) = 1",
        ),
    ),
    "an earlier start above": (
        two(start=day("2026-01-05")) | project(model("s.child", "SELECT d FROM s.parent", **RANGED | {"start": None})),
        two(start=day("2026-01-01")) | project(model("s.child", "SELECT d FROM s.parent", **RANGED | {"start": None})),
    ),
    "the day of a row": (
        two(DAYS, **RANGED),
        two(DAYS.replace("price, d FROM", "price, DATE_ADD(d, 1) AS d FROM"), **RANGED),
    ),
    "a time column's text under what is filled in order": (
        two("SELECT id, d FROM s.raw", kind=Kind.INCREMENTAL_BY_UNIQUE_KEY, unique_key=("id",)),
        two("SELECT id, d, price FROM s.raw", kind=Kind.INCREMENTAL_BY_UNIQUE_KEY, unique_key=("id",)),
    ),
}  # fmt: skip
FORWARD: Mapping[str, ForwardOnly] = {
    "forward-only": ForwardOnly(every=True),
    "forward-only since a day": ForwardOnly(every=True, since=day("2026-01-05")),
}


def plan_of(edit: Edit, **asked: object) -> tuple[Environment, Plan]:
    prod, loaded = promote(edit[0])
    return prod, make_plan(edit[1], Environment("dev"), prod, loaded, **asked)


def plan_of_person(category: Category) -> tuple[Environment, Plan]:
    edit = two(), two(f"{PARENT} WHERE id > 1")
    return plan_of(edit, categories={"s.parent": category}, who="ann")


def take_back() -> tuple[Environment, Plan]:
    """A table with rows that a forward-only change kept, rebuilt."""
    prod, loaded = promote(two(DAYS, **RANGED))
    doubled = two(DAYS.replace("price", "price * 2 AS price", 1), **RANGED)
    mixed = make_plan(doubled, prod, prod, loaded, forward=ForwardOnly(every=True))
    here = replace(prod, snapshots=mixed.new.snapshots)
    held = {c.new.table: c.forward.rows for c in mixed.changes if c.new and c.forward}
    more = two(doubled["s.parent"].sql.replace("d FROM", "d, 1 AS extra FROM"), **RANGED)
    return here, make_plan(more, Environment("dev"), here, replace(loaded, timelines={**loaded.timelines, **held}))


def plans_in_place() -> Iterator[tuple[Environment, Plan]]:
    """A run and restatements, by models, a seed and an external table."""
    models = two(DAYS, **RANGED) | seed_models("one") | project(model("s.far", "SELECT COUNT(*) AS n FROM s.child"))
    prod, loaded = promote(models)
    yield prod, build_run(prod, Loaded({}), Window(NOW))
    late = {
        name: replace(definition, batches=replace(definition.batches, lookback=2))
        for name, definition in models.items()
    }
    again, held = promote(late)
    yield again, build_run(again, held, Window(NOW))
    for chosen in ("s.parent", "s.seed", "s.raw"):
        yield prod, build_restatement(prod, loaded, Window(NOW), [chosen], Past((("prod", True, prod.snapshots),)))


def adopt() -> tuple[Environment, Plan]:
    prod = Environment("prod")
    taken = {"s.parent": Adoption("old.parent", (), at="1")}
    return prod, make_plan(project(RAW, model("s.parent", PARENT)), prod, prod, adopted=taken)


@cache
def claims() -> tuple[tuple[str, Claim], ...]:
    """Every reason of the edits above, and of some of the case book: `test_cases` reads all of it."""
    plans = {
        f"{case.theme}, {case.name}": plan for case in cases()[::12] if (plan := open_plan((case.before, case.after)))
    }
    plans |= {name: plan_of(edit) for name, edit in EDITS.items()}
    ranged = two(DAYS, "SELECT price FROM s.parent", **RANGED)
    doubled = two(DAYS.replace("price", "price * 2 AS price", 1), "SELECT price FROM s.parent", **RANGED)
    plans |= {name: plan_of((ranged, doubled), forward=asked) for name, asked in FORWARD.items()}
    told = two(DAYS, **RANGED, forward_only=True), two(f"{DAYS} AND id > 1", **RANGED, forward_only=True)
    plans |= {"a forward-only kind": plan_of(told), "kept rows": take_back(), "an adopted table": adopt()}
    plans |= {f"called {category}": plan_of_person(category) for category in (Category.NON_BREAKING, Category.BREAKING)}
    plans |= {f"in place {index}": plan for index, plan in enumerate(plans_in_place())}
    return tuple(
        (
            name,
            Claim(change, {change.name: change for change in plan.changes}, {**prod.snapshots, **plan.new.snapshots}),
        )
        for name, (prod, plan) in plans.items()
        for change in plan.changes
    )


def open_plan(edit: Edit) -> tuple[Environment, Plan] | None:
    try:
        return plan_of(edit)
    except ProjectErrors:
        return None


def test_each_reason_states_facts_that_hold() -> None:
    false_lines = [f"{name}: {line}" for name, claim in claims() for line in false_claims(claim)]

    assert false_lines == []


def test_each_rule_has_a_fact_check() -> None:
    tables = Path("docs/reference/categories.md").read_text(encoding="utf-8").partition("## Change a category")[0]
    rules = set(re.findall(r"^\| `([a-z-]+)` \|", tables, re.M)) | {"added", "adopted", "removed", "restated", "due"}

    assert rules | {"categorized"} == OF_RULE.keys()
    assert {name for names in OF_RULE.values() for name in names} <= FACTS.keys()


def test_nearly_each_rule_is_met() -> None:
    # `same-data` takes two tables that Spark compared, `no-longer-ignored` two plans; the others have cases in the book
    elsewhere = {
        "same-data",
        "no-longer-ignored",
        "order-changed",
        "reads-changed-order",
        "reads-every-column",
        "removed",
    }

    assert OF_RULE.keys() - {claim.change.rule for _, claim in claims()} <= elsewhere


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        ("an aggregate beside a parent that gains a column", "Alters `n`; the rows stay the same ones."),
        (
            "a filter under a parent that is filtered",
            "WHERE changed, and with it the rows. The rows of `s.parent` change.",
        ),
        ("a column under a parent that is filtered", "The edit adds `d`. The rows of `s.parent` change."),
        (
            "a column under a parent whose read column is altered",
            "The edit adds `d`. Reads `s.parent.price`, which changed.",
        ),
        (
            "an owner under a filtered parent",
            "Only `owner` changed; the rows come from the same query. The rows of `s.parent` change.",
        ),
        ("a model that begins to read a new one", "JOIN, ON and FROM changed, and with it the rows."),
        ("a window where a key is known", "QUALIFY changed, and with it the rows."),
    ],
)
def test_the_reason_of_an_edited_model_names_its_own_edit_first(edit: str, reason: str) -> None:
    change = next(claim.change for name, claim in claims() if name == edit and claim.change.name == "s.child")

    assert change.reason == reason


@pytest.mark.parametrize(
    ("query", "obstacle"),
    [
        (
            "SELECT id FROM s.parent WHERE id IN (WITH RECURSIVE c AS (SELECT 1 AS n) SELECT n FROM c)",
            "a recursive CTE (in `parent.id IN (WITH RECURSIVE c AS (SELECT 1 AS n) SELECT ...`)",
        ),
        (
            "SELECT transform(array(id), x -> (SELECT max(p.id) + x FROM s.parent AS p)) AS id FROM s.parent",
            "a subquery inside a lambda (in `(SELECT MAX(p.id) + x AS _col_0 FROM s.parent AS p)`)",
        ),
    ],
)
def test_a_reason_names_the_construct_that_cannot_be_followed(query: str, obstacle: str) -> None:
    plan = plan_of((two(), two(child=query)))[1]
    reason = next(change.reason for change in plan.changes if change.name == "s.child")

    assert reason == f"mergeplan cannot follow {obstacle}, so every row counts as changed."


def test_a_reader_that_cannot_be_followed_names_the_construct() -> None:
    query = "SELECT id FROM s.parent WHERE id IN (WITH RECURSIVE c AS (SELECT 1 AS n) SELECT n FROM c)"
    plan = plan_of((two(child=query), two(PARENT.replace("d FROM", "d, 1 AS extra FROM"), query)))[1]
    reason = next(change.reason for change in plan.changes if change.name == "s.child")

    assert "are not known: mergeplan cannot follow a recursive CTE (in " in reason
    assert reason.endswith("so all of them count; `s.parent` adds `extra`.")


def test_a_false_claim_is_found() -> None:
    claim = next(claim for name, claim in claims() if name == "an aggregate beside a parent that gains a column")
    child = claim.plan["s.child"]
    wrong = replace(child, reason="Its `*` now includes `s.parent.extra`, which is added.", rule="reads-changed-column")
    unheard = replace(child, reason="It is so.", rule="new-rule")

    assert false_claims(replace(claim, change=wrong)) == [f"s.child: does not hold: {wrong.reason}"]
    assert len(false_claims(replace(claim, change=unheard))) == 2
