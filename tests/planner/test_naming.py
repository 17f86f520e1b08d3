"""What tables and views are called, and that a change of it loses nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.naming import Convention, Naming, Suffix
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.schedule import Loaded
from mergeplan.planner.snapshot.environment import Environment
from tests.planner.building import make_plan, model, project, promote

ONE = project(model("shop.a", "SELECT 1 AS x"), model("shop.b", "SELECT x FROM shop.a"))
TWO = project(model("shop.a", "SELECT 2 AS x"), model("shop.b", "SELECT x FROM shop.a"))
ELSEWHERE = Naming(schemas=(("^shop$", "store"),))


@pytest.mark.parametrize(
    ("naming", "prod", "dev"),
    [
        (Naming(), "shop.a", "shop__dev.a"),
        (Naming(suffix=Suffix.TABLE), "shop.a", "shop.a__dev"),
        (Naming(catalogs=(("^prod$", "main"), (".*", "lab"))), "main.shop.a", "lab.shop__dev.a"),
        (Naming(catalogs=(("dev.+", "lab"),)), "shop.a", "shop__dev.a"),
    ],
)
def test_a_view_says_its_environment_where_the_project_wants_it(naming: Naming, prod: str, dev: str) -> None:
    assert (naming.view("shop.a", "prod"), naming.view("shop.a", "dev")) == (prod, dev)


@pytest.mark.parametrize(
    ("naming", "table"),
    [
        (Naming(), "mergeplan__shop.shop__a__v1"),
        (ELSEWHERE, "store.shop__a__v1"),
        (Naming(schemas=(("sh", "store"), ("shop", "never"))), "store.shop__a__v1"),
        (Naming(schemas=(("hop", "never"),)), "mergeplan__shop.shop__a__v1"),
        (Naming(convention=Convention.TABLE_ONLY), "mergeplan__shop.a__v1"),
        (
            Naming(convention=Convention.HASH_MD5),
            "mergeplan__shop.mergeplan_md5__57b70d4c6625d8b1f83eeaf637b2a721",
        ),
    ],
)
def test_a_physical_table_is_called_as_the_project_wants(naming: Naming, table: str) -> None:
    assert naming.table("shop.a", "v1") == table


def views(plan: Plan) -> tuple[list[str], list[str]]:
    return [view.name for view in plan.views.added], [view.name for view in plan.views.dropped]


def test_new_naming_moves_an_environments_views_and_computes_nothing() -> None:
    prod, loaded = promote(ONE)
    dev = make_plan(TWO, Environment("dev"), prod, loaded).new
    known = Loaded({**loaded.timelines, **{c.new.table: c.needed for c in make_plan(TWO, dev, prod).changes if c.new}})

    plan = make_plan(TWO, replace(dev, revision=1), prod, known, naming=Naming(suffix=Suffix.TABLE))

    assert views(plan) == (["shop.a__dev", "shop.b__dev"], ["shop__dev.a", "shop__dev.b"])
    assert plan.is_virtual
    assert plan.promotes


def test_tables_stay_where_they_are_when_new_ones_are_to_be_elsewhere() -> None:
    prod, loaded = promote(ONE)

    unchanged = make_plan(ONE, prod, prod, loaded, naming=ELSEWHERE)
    changed = make_plan(project(ONE["shop.a"], model("shop.b", "SELECT x + 1 AS x FROM shop.a")), prod, prod, loaded,
                      naming=ELSEWHERE)  # fmt: skip

    assert unchanged.new.snapshots == prod.snapshots
    assert changed.new.snapshots["shop.a"].table.startswith("mergeplan__shop.shop__a__")
    assert changed.new.snapshots["shop.b"].table.startswith("store.shop__b__")


def test_a_table_in_another_place_is_another_version() -> None:
    here, there = make_plan(ONE).new.snapshots["shop.a"], make_plan(ONE, naming=ELSEWHERE).new.snapshots["shop.a"]

    assert here.version != there.version
    assert here.table != there.table


def test_a_view_never_stands_where_prod_has_another_models_view() -> None:
    clash = project(model("shop.a", "SELECT 1 AS x"), model("shop.a__dev", "SELECT 1 AS x"))
    prod, loaded = promote(clash)
    edited = clash | project(model("shop.a", "SELECT 2 AS x"))

    with pytest.raises(ProjectError) as told:
        make_plan(edited, Environment("dev"), prod, loaded, naming=Naming(suffix=Suffix.TABLE))

    assert str(told.value) == (
        "models/shop.a.sql:1: `shop.a__dev`, the view of `shop.a` in `dev`, is the view of `shop.a__dev` already. "
        "Rename the model or the environment."
    )
