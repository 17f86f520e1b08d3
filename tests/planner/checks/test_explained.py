"""Explained plans as trees: what is not of the known form is not understood."""

from __future__ import annotations

import pytest

from mergeplan.planner.checks.explained import NotUnderstood, parse_explain
from tests.planner.checks.plans import texts


def test_the_tree_is_as_it_is_drawn_and_knows_the_details_of_each_operator() -> None:
    (tree,) = parse_explain(texts("parquet")["sorted"]).trees

    drawn = [step.name for step in tree.steps()]
    assert drawn[:6] == ["AdaptiveSparkPlan", "Project", "SortMergeJoin Inner", "Sort", "Exchange", "Project"]
    assert drawn[-1] == "Scan parquet spark_catalog.shop.items"
    join = next(step for step in tree.steps() if "Join" in step.name)
    assert [input_.name for input_ in join.inputs] == ["Sort", "Sort"]
    assert join.details["Join condition"] == "None"


def test_a_star_for_generated_code_is_no_part_of_a_name() -> None:
    (tree,) = parse_explain(texts("parquet")["reused"]).trees

    assert [step.name for step in tree.inputs] == ["HashAggregate", "BroadcastExchange"]
    assert [step.reuses for step in tree.steps() if step.reuses] == [6]


def test_subqueries_are_trees_too_but_not_those_that_spark_adds_to_choose_partitions() -> None:
    scalar, dynamic = (parse_explain(texts("parquet")[name]) for name in ("subquery", "dynamic"))

    assert (len(scalar.trees), scalar.runtime_pruned) == (2, frozenset())
    assert (len(dynamic.trees), dynamic.runtime_pruned) == (1, {1})
    assert len(parse_explain(texts("parquet")["exists"]).trees) == 2  # one subquery, for which three operators ask


@pytest.mark.parametrize(
    "text",
    [
        "Error occurred during query planning: \n",
        texts("parquet")["forged"],  # a literal of the query that looks like the details of a scan
        texts("parquet")["sorted"].replace("   :- Sort (5)", "    :- Sort (5)"),
        texts("parquet")["sorted"].replace("\n(4) Exchange", "\n(40) Exchange"),
        "== Physical Plan ==\n\n\n",
    ],
)
def test_what_has_another_form_is_no_plan(text: str) -> None:
    with pytest.raises(NotUnderstood):
        parse_explain(text)


def test_two_details_of_one_name_are_none() -> None:
    text = texts("parquet")["pruned"].replace("ReadSchema", "PartitionFilters: [(x#1 = 3)]\nReadSchema")

    (tree,) = parse_explain(text).trees
    with pytest.raises(NotUnderstood):
        _ = list(tree.steps())[-1].details
