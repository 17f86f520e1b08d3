"""A model that cannot be opened is left as it is in prod, with what reads it; the rest of the project goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mergeplan.planner.apply.events import Event
from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.project.refused import Refusal, RefusedModels, without_refused
from mergeplan.planner.session.events import Linted
from mergeplan.planner.session.options import PlanOptions
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.unopened import add_unopened, merge_deployed
from mergeplan.planner.snapshot.environment import Environment
from tests.planner.building import external, make_plan, model, project, promote
from tests.planner.shop import ALONE

A = model("shop.a", "SELECT id, 1 AS x FROM raw.t")
B = model("shop.b", "SELECT x + 1 AS x FROM shop.a")
C = model("shop.c", "SELECT x FROM shop.b", Kind.VIEW)
D = model("shop.d", "SELECT 1 AS x")
PROD = project(external("raw.t", "id"), A, B, C, D)
WHY = ProjectError("no", place=Place("models/shop.b.sql", 1))
REFUSED = RefusedModels((Refusal("models/shop.b.sql", (WHY,), ("shop.b",)),))


def plan_of(models: Mapping[str, Model], refused: RefusedModels = REFUSED, environment: str = "prod") -> Plan:
    """The plan over a prod that shows `PROD`, of files that define these models and a refused one."""
    prod, loaded = promote(PROD)
    opened, refused = without_refused(models, refused)
    held, unopened = merge_deployed(opened, refused, PROD)
    target = prod if environment == "prod" else Environment(environment)
    return add_unopened(make_plan(held, target, prod, loaded), unopened)


def without_b(*edited: Model) -> dict[str, Model]:
    return {**{name: prod_model for name, prod_model in PROD.items() if name != "shop.b"}, **project(*edited)}


def test_a_refused_model_and_its_readers_stay_as_prod_shows_them() -> None:
    plan = plan_of(without_b(model("shop.c", "SELECT 9 AS x FROM shop.b", Kind.VIEW), model("shop.d", "SELECT 2 AS x")))

    assert [change.name for change in plan.changes] == ["shop.d"]
    assert (plan.views.added, plan.views.dropped, plan.blockers) == ((), (), ())
    assert {name: plan.new.snapshots[name] for name in ("shop.b", "shop.c")} == {
        name: plan.old.snapshots[name] for name in ("shop.b", "shop.c")
    }
    assert plan.unopened.held == {"shop.b", "shop.c"}
    assert plan.unopened.left_out == {"shop.c": "shop.b"}


def test_a_model_that_was_never_deployed_is_left_out_with_its_readers() -> None:
    new = model("shop.e", "SELECT * FROM shop.new")
    refused = RefusedModels((Refusal("models/new.sql", (WHY,), ("shop.new",)),))

    plan = plan_of(PROD | project(new), refused)

    assert plan.is_empty and not plan.blockers
    assert plan.unopened.left_out == {"shop.e": "shop.new"}


def test_every_error_of_a_file_is_named_at_its_line() -> None:
    other = ProjectError("nor that", place=Place("models/shop.b.sql", 4))
    refused = RefusedModels((Refusal("models/shop.b.sql", (WHY, other), ("shop.b",)),))

    files = plan_of(without_b(), refused).unopened.refused

    assert [(str(file.place), file.message, file.stands) for file in files] == [
        ("models/shop.b.sql:1", "no", True),
        ("models/shop.b.sql:4", "nor that", True),
    ]


@pytest.mark.parametrize("environment", ["prod", "dev"])
def test_a_change_that_would_compute_a_held_model_is_blocked(environment: str) -> None:
    plan = plan_of(without_b(model("shop.a", "SELECT id, 7 AS x FROM raw.t")), environment=environment)

    assert [str(blocker.place) for blocker in plan.blockers] == ["models/shop.b.sql:1", "models/shop.c.sql:1"]


def test_a_change_that_costs_a_held_model_nothing_is_not_blocked() -> None:
    plan = plan_of(without_b(model("shop.a", "SELECT id, 1 AS x, 5 AS y FROM raw.t")))

    assert not plan.blockers
    assert plan.new.snapshots["shop.b"].table == plan.old.snapshots["shop.b"].table


def test_what_a_held_model_reads_cannot_be_removed() -> None:
    plan = plan_of({name: prod_model for name, prod_model in without_b().items() if name != "shop.a"})

    assert plan.blockers[0].message == "`shop.b` still reads `shop.a`, which this change removes."


def test_a_table_that_only_a_held_model_reads_is_still_known() -> None:
    refused = RefusedModels((Refusal("models/shop.a.sql", (WHY,), ("shop.a",)),))

    plan = plan_of(project(B, C, D), refused)

    assert plan.is_empty and not plan.blockers


def test_nothing_is_removed_while_a_file_does_not_say_what_it_defines() -> None:
    refused = RefusedModels((Refusal("models/renamed.sql", (WHY,), (), clear=False),))

    plan = plan_of(without_b(), refused)

    assert plan.is_empty and not plan.blockers
    assert plan.unopened.held == {"shop.b", "shop.c"}
    assert [refusal.stands for refusal in plan.unopened.refused] == [True]


def test_a_file_that_lost_its_name_is_known_by_its_path() -> None:
    other = replace(REFUSED.refusals[0], models=("shop.bb",))

    plan = plan_of(without_b(), RefusedModels((other,)))

    assert plan.is_empty and plan.unopened.held == {"shop.b", "shop.c"}


# On a project's files

E = "MODEL (name shop.e, kind FULL);\nSELECT {} AS x"
F = "MODEL (name shop.f, kind VIEW);\nSELECT x FROM shop.e"
BROKEN = "MODEL (name shop.e, kind MANAGED);\nSELECT 2 AS x"


def edit(folder: Path, name: str, text: str) -> None:
    (folder / "models" / name).write_text(text)


def test_what_never_opened_only_warns(offline: Session, tmp_path: Path) -> None:
    edit(tmp_path, "e.sql", BROKEN)
    edit(tmp_path, "f.sql", F)
    events = list[Event]()

    plan = offline.plan("dev", on_event=events.append)

    assert {"shop.e", "shop.f"}.isdisjoint(change.name for change in plan.changes)
    assert [refusal.stands for refusal in plan.decision.unopened.refused] == [False]
    assert [str(v.place) for event in events if isinstance(event, Linted) for v in event.violations] == [
        "models/e.sql:1"
    ]
    with pytest.raises(ProjectError, match=r"^models/e.sql:1: The kind MANAGED is not supported yet.$"):
        offline.plan("dev", PlanOptions(strict=True))
    with pytest.raises(ProjectError, match=r"^models/e.sql:1: The kind MANAGED is not supported yet.$"):
        offline.plan("dev", PlanOptions(must_open=("models/e.sql",)))


def test_prod_keeps_what_opened_before(shop: Callable[..., Session], tmp_path: Path) -> None:
    session = shop(**ALONE | {"total": "", "e": E.format(1), "f": F, "g": E.format(1).replace(".e", ".g")})
    session.plan().apply()
    edit(tmp_path, "e.sql", BROKEN)
    edit(tmp_path, "g.sql", E.format(5).replace(".e", ".g"))

    assert [violation.blocking for violation in session.lint().violations] == [True]
    with pytest.raises(ProjectError, match=r"^models/e.sql:1: The kind MANAGED"):
        session.plan()
    session.plan(options=PlanOptions(skip_linter=True)).apply()
    session.janitor()
    seen = [session.fetch("SELECT f.x, g.x FROM shop.f CROSS JOIN shop.g").rows]
    session.rollback("prod")
    seen.append(session.fetch("SELECT f.x, g.x FROM shop.f CROSS JOIN shop.g").rows)
    edit(tmp_path, "e.sql", E.format(3))
    session.plan().apply()
    seen.append(session.fetch("SELECT f.x, g.x FROM shop.f CROSS JOIN shop.g").rows)

    assert seen == [((1, 5),), ((1, 1),), ((3, 5),)]
