"""What is expensive in the plans that a real Spark explained."""

from __future__ import annotations

import re
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeplan.planner.checks.explained import NotUnderstood
from mergeplan.planner.checks.physical_plan import Scan, read_plan
from tests.planner.checks.plans import READ, TABLES, plan, texts

CHOSEN, WHOLE = Scan("shop.orders", True, True, ("day",)), Scan("shop.orders", False, False)
BOTH = (("shop.items", "shop.orders"),)


@pytest.mark.parametrize("form", ["parquet", "delta", "iceberg"])
def test_a_filter_on_a_partition_is_seen_in_every_format(form: str) -> None:
    assert plan("pruned", form).scans == (CHOSEN,)
    assert plan("wrapped" if form == "iceberg" else "unpruned", form).scans == (WHOLE,)


def test_not_null_chooses_nothing_and_a_joins_other_side_chooses_while_it_runs() -> None:
    assert CHOSEN in plan("dynamic").scans
    assert CHOSEN in plan("dynamic", "delta").scans
    assert WHOLE in plan("exists").scans  # its filter is on no column


def test_an_iceberg_table_of_unknown_partitions_is_not_reported_as_pruned() -> None:
    (scan,) = read_plan(texts("iceberg")["pruned"], {}.get).scans

    assert scan == Scan("shop.orders", None, True)
    assert plan("hidden", "iceberg").scans == (Scan("shop.events", True, True, ("ts",)),)


def test_shuffles_are_known_by_their_columns_and_one_task_for_one_row_is_none() -> None:
    assert plan("grouped").shuffles == (("day", "id"), ("day",))
    assert plan("global").shuffles == plan("global").one_task == ()
    assert len(plan("reuse").shuffles) == 2
    assert len(plan("reused").shuffles) == 1


def test_joins_are_distinguished_by_how_their_sides_meet() -> None:
    assert plan("join").broadcast == (("shop.orders",),)
    assert plan("sorted").shuffled == (("shop.items",), ("shop.orders",))
    assert plan("cross").cartesian == plan("cartesian").cartesian == BOTH
    assert plan("range").nested_loops == plan("not_in").nested_loops == BOTH
    assert plan("reused").broadcast == (("shop.orders",),)


@pytest.mark.parametrize("name", ["one_row", "limit1", "constants", "exists"])
def test_a_pair_of_each_row_with_one_row_or_a_few_constants_is_not_expensive(name: str) -> None:
    assert (plan(name).cartesian, plan(name).nested_loops) == ((), ())


def test_a_window_without_partitions_and_a_function_in_python_are_seen() -> None:
    assert plan("one_window").one_task == (("shop.orders",),)
    assert plan("windows").one_task == ()
    assert plan("python").python == (("shop.orders",),)


def test_an_unknown_operator_or_exchange_makes_the_whole_plan_unknown() -> None:
    text = texts("parquet")["grouped"]
    for known, unknown in (("HashAggregate", "CometAggregate"), ("hashpartitioning", "KeyedPartitioning")):
        with pytest.raises(NotUnderstood):
            read_plan(text.replace(known, unknown), TABLES.get)


def test_an_exchange_that_reuses_itself_or_what_is_not_there_makes_the_plan_unknown() -> None:
    text = texts("parquet")["reused"]
    for wrong in ("10", "99"):
        with pytest.raises(NotUnderstood):
            read_plan(text.replace("operator id: 6", f"operator id: {wrong}"), TABLES.get)


def test_tables_of_no_model_have_their_own_name_and_files_by_their_path_none() -> None:
    text = texts("parquet")["pruned"]

    assert [scan.table for scan in read_plan(text, {}.get).scans] == ["shop.orders"]
    assert [s.table for s in read_plan(text.replace("spark_catalog", "lake"), TABLES.get).scans] == ["shop.orders"]
    assert read_plan(text.replace(" spark_catalog.shop.orders", " "), TABLES.get).scans == ()


@given(st.sampled_from(READ), st.randoms(use_true_random=False))
def test_a_broken_text_is_read_or_not_understood_and_nothing_else(which: tuple[str, str], chance: Random) -> None:
    lines = texts(which[0])[which[1]].split("\n")
    for _ in range(chance.randrange(1, 4)):
        at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[at] = chance.choice(["", lines[other], lines[at][chance.randrange(len(lines[at]) + 1) :]])

    with suppress(NotUnderstood):
        read_plan("\n".join(lines), TABLES.get)


@given(st.sampled_from(READ), st.randoms(use_true_random=False))
def test_the_order_of_the_details_is_of_no_importance(which: tuple[str, str], chance: Random) -> None:
    form, name = which
    head, *blocks = re.split(r"\n(?=\(\d+\) )", texts(form)[name].partition("\n===== Sub")[0])
    chance.shuffle(blocks)
    rest = texts(form)[name][len("\n".join([head, *blocks])) :]

    shuffled = "\n".join([head, *(f"{block.rstrip()}\n" for block in blocks)]) + rest
    assert read_plan(shuffled, TABLES.get) == plan(name, form)
