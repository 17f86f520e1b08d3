"""How often Spark's analyzer agrees with the rules, and that it denies what is not so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from mergeplan.planner.apply.witness.questions import Questions
from mergeplan.planner.apply.witness.stand_ins import StandIns
from mergeplan.planner.engine.analysis import TOO_SLOW, PairResult
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectErrors
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import Category, Columns
from mergeplan.planner.plan.witness.check import Check, CheckState
from mergeplan.planner.plan.witness.claims import claims_of
from mergeplan.planner.snapshot.environment import Environment

from .building import make_plan, model, project, promote
from .casebook import cases, external_models
from .witnessing import Models, declare_columns, witness

DISAGREEMENTS_MAX = 22  # of about a thousand claims of the case book: edits that are computed needlessly
BASE = "SELECT id, item, price FROM src.orders"
# What somebody might take for the same, and is not: the text before and the text after.
WRONG = [
    ("SELECT id, item, count(*) AS n FROM src.orders GROUP BY id, item GROUPING SETS ((id), (item))",
     "SELECT id, item, count(*) AS n FROM src.orders GROUP BY id, item, GROUPING SETS ((id), (item))"),
    ("SELECT id FROM src.orders WHERE id NOT IN (SELECT id FROM src.returns)",
     "SELECT id FROM src.orders WHERE id NOT IN ((SELECT max(id) FROM src.returns))"),
    (BASE, f"{BASE} WHERE price > 0"),
    (BASE, "SELECT id, item, price + 1 AS price FROM src.orders"),
    (BASE, "SELECT DISTINCT id, item, price FROM src.orders"),
    ("SELECT id, rank() OVER (ORDER BY price) AS r FROM src.orders",
     "SELECT id, dense_rank() OVER (ORDER BY price) AS r FROM src.orders"),
]  # fmt: skip


def call_equivalent(plan: Plan) -> Plan:
    """The plan as rules would make it that call every change equivalent."""
    changes = tuple(
        replace(change, category=Category.EQUIVALENT, recomputed=False, columns=Columns(), effect=Columns())
        for change in plan.changes
    )
    return replace(plan, changes=changes)


def write_project(text: str) -> Models:
    return {**external_models(), **project(model("m.base", text))}


@pytest.mark.parametrize(("before", "after"), WRONG)
def test_a_wrong_claim_is_denied(engine: SparkEngine, before: str, after: str) -> None:
    checks = witness(engine, write_project(before), write_project(after), call_equivalent).checks

    assert checks["m.base"].state is CheckState.DISAGREES


def test_a_reader_of_a_new_struct_with_an_odd_name_is_checked(engine: SparkEngine) -> None:
    def write_models(text: str) -> Models:
        return {**write_project(text), **project(model("m.reader", "SELECT id FROM m.base"))}

    edited = BASE.replace("price", "price, named_struct('c d', 2) AS pair")
    checks = witness(engine, write_models(BASE), write_models(edited)).checks

    assert checks["m.reader"].state is CheckState.AGREES


def two_forms(first: str, later: str) -> Models:
    sql = (
        f"SELECT * FROM ({first}) AS first_run WHERE NOT EXISTS(SELECT 1 FROM m.t)"
        f" UNION ALL SELECT * FROM ({later}) AS later_run WHERE EXISTS(SELECT 1 FROM m.t)"
    )
    kept = model("m.t", sql, Kind.INCREMENTAL_BY_UNIQUE_KEY, unique_key=("id",), reads_itself=True)
    return {**external_models(), **project(replace(kept, depends_on=("src.orders",)))}


@pytest.mark.parametrize(
    ("first", "state"), [(BASE, CheckState.AGREES), (f"{BASE} WHERE price > 0", CheckState.DISAGREES)]
)
def test_the_first_form_is_checked_where_only_the_later_one_is_said_to_change(
    engine: SparkEngine, first: str, state: CheckState
) -> None:
    before, after = two_forms(BASE, BASE), two_forms(first, f"{BASE} WHERE price > 1")

    def call_later_form(plan: Plan) -> Plan:
        return replace(plan, changes=tuple(replace(change, rule="later-form") for change in plan.changes))

    assert witness(engine, before, after, call_later_form).checks["m.t"].state is state


# Embedded queries before and after, and what Spark says: the case of a column's name shows in the rows of readers.
EMBEDDED = [
    ("SELECT * FROM (SELECT id AS ab FROM src.orders)", "SELECT * FROM (SELECT id AS aB FROM src.orders)", "disagrees"),
    ("SELECT id AS ab FROM src.orders", "SELECT id AS Ab FROM src.orders", "disagrees"),
    ("SELECT id AS Ab FROM src.orders", "SELECT o.ID AS Ab FROM src.orders AS o WHERE TRUE", "agrees"),
]


@pytest.mark.parametrize(("before", "after", "state"), EMBEDDED)
def test_the_case_of_names_counts_in_an_embedded_query(
    engine: SparkEngine, before: str, after: str, state: str
) -> None:
    projects = [{**external_models(), **project(model("m.base", text, kind=Kind.EMBEDDED))} for text in (before, after)]

    assert witness(engine, projects[0], projects[1], call_equivalent).checks["m.base"].state == state


# Readers of `m.base`, which gets a column `qty`: those that feel it, and those that do not.
FELT = [
    "SELECT * FROM m.base",
    "SELECT o.id FROM src.orders AS o WHERE EXISTS (SELECT 1 FROM m.base AS b WHERE b.id = qty)",
    "SELECT id FROM m.base NATURAL JOIN (SELECT id, qty FROM src.orders)",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT * FROM m.base)",
    "SELECT x FROM m.base AS q(x, y, z)",
    "SELECT TO_JSON(STRUCT(*)) AS j FROM m.base",
]
UNFELT = [
    "SELECT id, SUM(price) AS s FROM m.base GROUP BY id",
    "SELECT id FROM (SELECT * FROM m.base) WHERE price > 1",
    "SELECT o.id FROM src.orders AS o WHERE EXISTS (SELECT 1 FROM m.base AS b WHERE b.id = o.qty)",
]


@pytest.mark.parametrize("kind", [Kind.FULL, Kind.VIEW])
@pytest.mark.parametrize("query", [*FELT, *UNFELT])
def test_an_unedited_reader_is_kept_unless_it_reads_the_new_column(engine: SparkEngine, query: str, kind: Kind) -> None:
    before, after = (
        {**external_models(), **project(model("m.base", text, kind=kind), model("m.reader", query))}
        for text in (BASE, BASE.replace("price", "price, qty"))
    )

    checks = witness(engine, before, after, call_equivalent).checks

    assert checks["m.reader"].state is (CheckState.DISAGREES if query in FELT else CheckState.AGREES)


# The text of `m.base` before and after, and a reader that feels the difference by the place or the type of a column.
MOVED = [
    (BASE, "SELECT item, id, price FROM src.orders", "SELECT x FROM m.base AS q(x, y, z)"),
    ("SELECT id, price AS `a-` FROM src.orders", "SELECT id, CAST(price AS DOUBLE) AS `a-` FROM src.orders",
     "SELECT id FROM m.base WHERE `a-` > 1"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "query"), MOVED)
def test_an_unedited_reader_is_not_kept_over_a_moved_or_altered_column(
    engine: SparkEngine, before: str, after: str, query: str
) -> None:
    projects = [
        {**external_models(), **project(model("m.base", text), model("m.reader", query))} for text in (before, after)
    ]

    checks = witness(engine, projects[0], projects[1], call_equivalent).checks

    assert checks["m.reader"].state is CheckState.DISAGREES


RENAMED = [
    {
        **write_project(f"SELECT id, price AS {a} FROM src.orders"),
        **project(model("m.reader", f"SELECT {a} AS a FROM m.base")),
    }
    for a in ("a", "b")
]


def test_a_reader_that_follows_a_renamed_column_is_kept(engine: SparkEngine) -> None:
    witnessed = witness(engine, *RENAMED)

    assert [check.state for check in witnessed.checks.values()] == [CheckState.AGREES] * 2
    assert {change.name: change.category for change in witnessed.plan.changes}["m.reader"] is Category.EQUIVALENT


def test_a_table_below_two_views_is_kept_if_the_first_is_written_in_other_words(engine: SparkEngine) -> None:
    below = model("m.view", "SELECT id, price FROM m.base", kind=Kind.VIEW), model("m.reader", "SELECT id FROM m.view")
    projects = [
        {**external_models(), **project(model("m.base", text, kind=Kind.VIEW), *below)}
        for text in (BASE, f"{BASE} WHERE TRUE")
    ]

    checks = witness(engine, *projects).checks

    assert {check.state for check in checks.values()} == {CheckState.AGREES}


def test_a_renamed_column_with_other_values_is_denied(engine: SparkEngine) -> None:
    after = {**RENAMED[1], **write_project("SELECT id, price + 0.5 AS b FROM src.orders")}

    def call_renamed(plan: Plan) -> Plan:
        base, reader = plan.changes
        assert base.old and base.new and base.new.meaning
        values = tuple(zip(("id", "b"), base.old.visible_digest.columns.values(), strict=True))
        new = replace(base.new, meaning=replace(base.new.meaning, columns=values))
        return replace(plan, changes=(replace(base, new=new), reader))

    assert witness(engine, RENAMED[0], after, call_renamed).checks["m.base"].state is CheckState.DISAGREES


def test_a_model_whose_comparison_was_given_up_is_recomputed() -> None:
    before, after = write_project(BASE), write_project(f"{BASE} WHERE TRUE")
    prod, loaded = promote(before)
    plan = make_plan(after, Environment("dev"), prod, loaded)

    stand_ins = StandIns(plan, lambda snapshot: declare_columns(external_models()["src.orders"]))
    checks = Questions(stand_ins, lambda _: [PairResult(gave_up=TOO_SLOW)]).check_claims(claims_of(plan))

    assert checks["m.base"] == Check(CheckState.DISAGREES, f"Not checked by Spark: {TOO_SLOW}.")


@pytest.mark.prove
def test_the_witnesses_agree_on_the_case_book(
    engine: SparkEngine, record_property: Callable[[str, object], None]
) -> None:
    states = Counter[str]()
    for case in cases():
        try:
            checks = witness(engine, case.before, case.after).checks
        except ProjectErrors:
            continue
        states.update(check.state if check.state != "explained" else check.detail for check in checks.values())

    record_property("checks", {str(state): count for state, count in states.items()})
    assert states[CheckState.AGREES] > 900
    assert states[CheckState.DISAGREES] <= DISAGREEMENTS_MAX, states
