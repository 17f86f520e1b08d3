"""The order of models whose audits read other models."""

from __future__ import annotations

from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeplan.planner.apply.backfill.backfill import add_audit_parents
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.state.store import StateStore
from tests.planner.shop import ALONE, FILES, plan_and_apply, rows, write_shop
from tests.sampling import prove_rest

NAMES = "abcdef"


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, tuple[str, ...]]:
    """Models that read models before them in the alphabet."""
    return {
        name: tuple(sorted(draw(st.sets(st.sampled_from(NAMES[:at] or "a"))) - {name})) for at, name in enumerate(NAMES)
    }


@given(graphs(), st.dictionaries(st.sampled_from(NAMES), st.sets(st.sampled_from(NAMES + "x"))))
def test_parents_come_first_and_there_is_always_an_order(
    parents: dict[str, tuple[str, ...]], read: dict[str, set[str]]
) -> None:
    graph = add_audit_parents(parents, read)

    order = list(TopologicalSorter(graph).static_order())
    assert set(order) == set(NAMES)
    assert all(graph[name][: len(parents[name])] == parents[name] for name in parents)


def test_what_an_audit_reads_comes_first_unless_it_is_made_of_the_audited_model() -> None:
    parents = {"orders": (), "total": ("orders",), "users": ()}

    assert add_audit_parents(parents, {"orders": {"users", "total", "raw.other"}}) == {**parents, "orders": ("users",)}


@pytest.mark.parametrize("source", prove_rest(["`SPARK_CATALOG`.shop.users", "shop.users", "spark_catalog.shop.users"]))
def test_an_audit_finds_the_rows_of_the_model_that_it_reads_in_the_first_plan(
    tmp_path: Path, engine: SparkEngine, store: StateStore, source: str
) -> None:
    audit = "AUDIT (name refers);\nSELECT t.@key FROM @this_model AS t ANTI JOIN @source AS s ON s.@key = t.@key"
    header = f"MODEL (name shop.orders, kind FULL, audits (refers(key := id, source := {source})))"
    orders = f"{header};\nSELECT 1 AS id;\n{audit}"
    users = "MODEL (name shop.users, kind FULL);\nSELECT id FROM RANGE(3)"

    one = FILES["config.yaml"].replace("concurrent_tasks: 2", "concurrent_tasks: 1")
    project = write_shop(tmp_path, **ALONE | {"total": "", "config": one}, orders=orders, users=users)

    outcome = plan_and_apply(project, engine, store)

    assert outcome.failures == ()
    assert rows(engine, "SELECT count(*) FROM shop.orders") == [(1,)]
