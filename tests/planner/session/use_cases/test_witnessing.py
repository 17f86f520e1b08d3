"""No table is kept on the word of the rules alone: Spark's analyzer sees what prod would hold otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mergeplan.planner.apply.events import ClaimRefuted, Event
from mergeplan.planner.plan.witness.check import CheckState
from mergeplan.planner.session.options import PlanOptions
from mergeplan.planner.session.session import Session
from tests.planner.shop import ALONE
from tests.sampling import prove_rest

NONE = ALONE | {"total": ""}
TABLE = "MODEL (name shop.t, kind FULL{});\nSELECT * FROM VALUES (1, 10, 5), (1, 20, 6), (2, 30, 7) AS v(id, a, b)"
CUBE = "SELECT id, a, count(1) AS n FROM shop.t GROUP BY id, a{} GROUPING SETS ((id), (a))"
BY_PLACE = "SELECT y FROM (SELECT * FROM shop.t) AS q(x, y, z)"
UNION = "SELECT id, a, b FROM shop.t WHERE id > 5 UNION ALL SELECT * FROM shop.t"
PARTITIONED = ", partitioned_by (id)"


def full(name: str, query: str) -> str:
    return f"MODEL (name shop.{name}, kind FULL);\n{query}"


def edit(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / "models" / f"{name}.sql").write_text(text)


def fetch_shown_and_query(session: Session, query: str, model: str) -> tuple[list[object], list[object]]:
    """The rows that prod shows of a model, and those that its query returns of the very table that it reads."""
    table = session.plan().decision.new.snapshots["shop.t"].table
    texts = f"SELECT * FROM shop.{model}", query.replace("shop.t", table)
    shown, returned = (session.fetch(text).rows for text in texts)
    return sorted(shown, key=repr), sorted(returned, key=repr)


# The query of a model, the files before it, and the edit: by our own reading the model keeps its table.
EDITS = {
    "grouping sets": (CUBE.format(""), {"m": full("m", CUBE.format(","))}, {"m": full("m", CUBE.format(""))}),
    "by its place": (BY_PLACE, {}, {"t": TABLE.format(PARTITIONED)}),
    "a union": (UNION, {}, {"t": TABLE.format(PARTITIONED)}),
    "the first place": (
        BY_PLACE.replace("y FROM", "x FROM"),
        {"t": TABLE.format(PARTITIONED)},
        {"t": TABLE.format(PARTITIONED).replace("SELECT *", "SELECT id, a + 1 AS a, b")},
    ),
}


@pytest.mark.parametrize("case", prove_rest(EDITS))
def test_prod_holds_what_the_edited_project_returns(shop: Callable[..., Session], tmp_path: Path, case: str) -> None:
    query, before, after = EDITS[case]
    session = shop(**(NONE | {"t": TABLE.format(""), "m": full("m", query)} | before))
    session.plan().apply()

    edit(tmp_path, **after)
    session.plan().apply()

    shown, returned = fetch_shown_and_query(session, query, "m")
    assert shown == returned


def test_a_plan_says_what_spark_sees_differently(shop: Callable[..., Session], tmp_path: Path) -> None:
    session, events = shop(**NONE, t=TABLE.format(""), m=full("m", CUBE.format(","))), list[Event]()
    session.plan().apply()

    edit(tmp_path, m=full("m", CUBE.format("")))
    plan = session.plan("dev", on_event=events.append)
    again = session.plan("dev")

    refuted = [event for event in events if isinstance(event, ClaimRefuted)]
    if refuted:  # until our own reading tells the two apart
        assert refuted[0].model == "shop.m"
        assert [change.rule for change in plan.changes] == ["witness-disagrees"]
    assert plan.id == again.id


def test_what_spark_agrees_with_is_kept_and_said_to_be_checked(shop: Callable[..., Session], tmp_path: Path) -> None:
    session = shop(**NONE, t=TABLE.format(""), m=full("m", "SELECT id, sum(a) AS s FROM shop.t GROUP BY id"))
    session.plan().apply()

    edit(tmp_path, t=TABLE.format("").replace("SELECT *", "SELECT *, 1 AS c"))
    plan = session.plan("dev")

    (kept,) = (change for change in plan.changes if change.name == "shop.m")
    assert not kept.recomputed
    assert plan.decision.checks["shop.m"].state is CheckState.AGREES


def test_columns_reordered_forward_only_reach_a_reader_by_place_with_its_next_edit(
    shop: Callable[..., Session], tmp_path: Path
) -> None:
    reader = full("r", "SELECT y FROM shop.m")
    session = shop(**NONE, t=TABLE.format(""), m=full("m", BY_PLACE), r=reader)
    session.plan().apply()

    edit(tmp_path, t=TABLE.format("").replace("SELECT *", "SELECT a, id, b"))
    forward = session.plan(options=PlanOptions(forward_only=True))
    forward.apply()
    kept = session.fetch("SELECT y FROM shop.r").rows
    edit(tmp_path, m=full("m", BY_PLACE.replace("SELECT y", "SELECT y, 1 AS k")))
    session.plan().apply()

    altered = {change.name: change.columns.altered for change in forward.decision.changes}
    assert altered == {"shop.t": frozenset(), "shop.m": {"y"}, "shop.r": {"y"}}
    assert sorted(kept) == [(10,), (20,), (30,)]
    for model in ("m", "r"):
        assert sorted(session.fetch(f"SELECT y FROM shop.{model}").rows) == [(1,), (1,), (2,)]
