"""A session: each use case as a call, one at a time; data comes back, and what cannot be is raised."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mergeplan.planner.apply.events import Event, Stage, StageStarted
from mergeplan.planner.errors import PlanMoved, QueryError, Refused, RequestError
from mergeplan.planner.session.events import Due, Linted
from mergeplan.planner.session.options import PlanOptions, RunOptions, TableDiffOptions
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.settings import SessionSettings
from tests.planner.shop import ALONE

A = "MODEL (name shop.a, kind FULL, grain x);\nSELECT {} AS x"
VIEW = "MODEL (name shop.b, kind VIEW);\nSELECT x FROM shop.a"
BROKEN = "MODEL (name shop.broken, kind FULL);\nSELECT raise_error('no luck') AS x"
SMALL = ALONE | {"total": "", "a": A.format(1), "b": VIEW}


def edit(folder: Path, name: str, text: str) -> None:
    (folder / "models" / name).write_text(text)


def test_a_folder_that_is_none_is_no_project(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="There is no folder"):
        Session(SessionSettings(tmp_path / "nothing"))


def test_a_plan_that_needs_no_spark_starts_none(offline: Session) -> None:
    events = list[Event]()

    plan = offline.plan("dev", on_event=events.append)

    assert (plan.environment, plan.is_empty, plan.blockers) == ("dev", False, ())
    assert {change.name for change in plan.changes} > {"shop.items", "shop.daily"}
    assert events == [Linted(())]
    assert repr(plan) == f"<plan {plan.id}: New environment `dev` will be created from `prod`>"


def test_categories_and_dates_are_checked(offline: Session) -> None:
    with pytest.raises(RequestError, match=r"`shop\.daily=broken` gives no category"):
        offline.plan("dev", PlanOptions(categories={"shop.daily": "broken"}))
    with pytest.raises(RequestError, match="does not come after the start"):
        offline.run("dev", RunOptions(start="2026-01-05", end="2026-01-01"))
    with pytest.raises(RequestError, match="renames nothing"):
        offline.table_diff("prod", "dev", options=TableDiffOptions(rename={"a": ""}))


def test_a_plan_whose_project_changed_is_refused_by_what_moved(offline: Session, tmp_path: Path) -> None:
    plan = offline.plan("dev")
    edit(tmp_path, "apart.sql", "MODEL (name shop.apart, kind FULL);\nSELECT 8 AS seven")

    with pytest.raises(PlanMoved, match="the project's files"):
        plan.apply()


def test_an_environment_is_compared_promoted_and_rolled_back(shop: Callable[..., Session], tmp_path: Path) -> None:
    session, stages = shop(**SMALL), list[Stage]()
    session.plan().apply(on_event=lambda event: stages.append(event.stage) if isinstance(event, StageStarted) else None)
    edit(tmp_path, "a.sql", A.format(2))
    different = session.diff("prod")
    session.plan("dev").apply()
    (compared,) = session.table_diff("prod", "dev", "shop.a")
    session.plan().apply(note="two")

    assert stages == [Stage.CREATE, Stage.BACKFILL, Stage.PROMOTE]
    assert [change.name for change in different.changes] == ["shop.a", "shop.b"]
    assert (compared.same, session.diff("prod").same) == (False, True)
    assert [(row.revision, row.note) for row in session.history()] == [(2, "two"), (1, "")]
    back = session.plan_rollback("prod")
    assert (back.target.revision, [view.model for view in back.views], back.refusal) == (1, ["shop.a", "shop.b"], None)
    assert (session.rollback("prod").promoted.revision, session.fetch("SELECT x FROM shop.b").rows) == (3, ((1,),))


def test_environments_go_and_checks_report(shop: Callable[..., Session]) -> None:
    session, events = shop(**SMALL), list[Event]()
    session.plan().apply()
    session.plan("dev", PlanOptions(include_unmodified=True)).apply()

    before = [environment.name for environment in session.environments()]
    gone = session.invalidate("dev", on_event=events.append)

    assert (before, [environment.name for environment in session.environments()]) == (["dev", "prod"], ["prod"])
    assert (gone.promoted.dropped, gone.tables) == (2, ())  # prod uses the tables
    assert (session.janitor(dry_run=True).dropped, session.audit(), session.test().ok) == (False, (), True)
    assert "<b>0 audits ran, 0 failed</b>" in session.audit()._repr_html_()
    assert session.lint(["shop.a"]).models == 1
    assert {node.model for node in session.lineage("shop.b", "x").nodes} == {"shop.a", "shop.b"}


@pytest.mark.prove
def test_a_run_reports_what_is_due_and_a_restatement_is_a_plan(shop: Callable[..., Session]) -> None:
    session, events = shop(**SMALL), list[Event]()
    session.plan().apply()

    nothing = session.run(on_event=events.append)
    plan = session.restate(["shop.a"])
    done = plan.apply()

    assert (nothing.outcome, [type(event) for event in events]) == (None, [Due])
    assert [change.name for change in plan.changes] == ["shop.a"]
    assert (done.filled.batches, session.apply(session.plan()).promoted) == (1, None)


def test_a_models_failure_is_raised_or_told(shop: Callable[..., Session]) -> None:
    session = shop(**SMALL, broken=BROKEN)
    plan = session.plan()

    outcome = plan.apply(check=False)

    assert [failure.model for failure in outcome.failures] == ["shop.broken"]
    assert (outcome.promoted, outcome.filled.batches) == (None, 1)
    with pytest.raises(QueryError, match="no luck"):
        plan.apply()


def test_a_blocked_plan_is_refused(shop: Callable[..., Session], tmp_path: Path) -> None:
    session = shop(**SMALL)
    session.plan().apply()
    edit(tmp_path, "a.sql", A.format(1).replace("AS x", "AS y"))

    plan = session.plan()

    assert "shop.b" in plan.blockers[0].message
    with pytest.raises(Refused, match=r"shop\.b"):
        plan.apply()
