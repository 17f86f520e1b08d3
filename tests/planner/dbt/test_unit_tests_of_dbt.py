"""Unit tests of dbt as ours: what an incremental model's own rows say, and what would ask something else."""

from __future__ import annotations

from typing import Any

import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.parsing.files.dbt.nodes import DbtCall, DbtFixture, DbtProject, DbtSource, DbtUnitTest
from mergeplan.planner.parsing.files.dbt.unit_tests import macro_calls, spell_names, unit_test_body, unit_test_text

from .test_texts import node

LATER = {"materialized": "incremental", "incremental_strategy": "append"}
OWN = DbtFixture(relation="`s`.`T`", rows=({"a": 1},))
GIVEN = DbtFixture(relation="s.x", query="select 1 as a")


def project(text: str = "select a from s.x", later: str = "", **settings: Any) -> DbtProject:
    return DbtProject(
        dbt="1.11", nodes=(node(text=text, later=later, **settings),), sources=(), unit_tests=(), exposures=(),
        hooks=(), files=(),
    )  # fmt: skip


def unit_test(**values: Any) -> DbtUnitTest:
    usual: dict[str, Any] = {
        "id": "unit_test.shop.t.adds", "name": "adds", "path": "models/t.yml", "model": "model.shop.t",
        "description": "", "inputs": (GIVEN,), "expect": DbtFixture(rows=({"a": 1},)), "is_incremental": False,
        "error": "",
    }  # fmt: skip
    return DbtUnitTest(**{**usual, **values})


def test_expected_rows_are_compared_by_the_columns_that_they_name() -> None:
    assert unit_test_body(unit_test(), project()) == {
        "model": "s.t",
        "description": "",
        "inputs": {"s.x": {"query": "select 1 as a"}},
        "outputs": {"query": {"rows": [{"a": 1}], "partial": True}},
    }
    every = unit_test_body(unit_test(expect=DbtFixture(query="select 1 as a")), project())
    assert every["outputs"] == {"query": {"query": "select 1 as a"}}


def test_a_later_run_is_one_whose_table_has_rows() -> None:
    twofold = project(later="select a from s.x where a > (select max(a) from s.t)", **LATER)

    first = unit_test_body(unit_test(inputs=(OWN, GIVEN)), twofold)
    later = unit_test_body(unit_test(inputs=(OWN, GIVEN), is_incremental=True), twofold)
    assert [first["inputs"], later["inputs"]] == [
        {"s.x": {"query": "select 1 as a"}},
        {"s.t": {"rows": [{"a": 1}]}, "s.x": {"query": "select 1 as a"}},
    ]


def test_the_table_after_a_load_is_beside_the_rows_of_the_query() -> None:
    load = {"table": [{"a": 1}], "execution_time": "2026-01-01"}
    alike = project(later="select a from s.x", **LATER)
    once = unit_test_body(unit_test(inputs=(OWN, GIVEN), load=load), alike)
    first = unit_test_body(unit_test(inputs=(OWN, GIVEN), load=load), project(later="select 2 as a", **LATER))

    assert once["this"] == {"rows": [{"a": 1}]}
    assert "s.t" not in once["inputs"]  # type: ignore[operator]  # a mapping
    assert "this" not in first
    assert once["vars"] == {"execution_time": "2026-01-01"}
    assert once["outputs"] == {"query": {"rows": [{"a": 1}], "partial": True}, "table": [{"a": 1}]}


def test_a_batch_of_a_microbatch_is_expected_as_a_table_alone() -> None:
    settings = {**LATER, "incremental_strategy": "microbatch"}
    body = unit_test_body(unit_test(load={"table": [], "start": "2026-01-01"}), project(**settings))

    assert body["outputs"] == {"table": []}


def test_our_own_tests_name_models_and_sources_as_dbt_does() -> None:
    text = "a:\n  model: t\n  inputs: {raw.x: [{t: 1}], 's.t': [], other: []}\nb: {model: s.t}\nc: [t"
    source = DbtSource(
        id="source.shop.raw.x", relation="lake.x", path="m.yml", description="", columns=(), tags=()
    )  # fmt: skip
    dbt_project = project().model_copy(update={"sources": (source,)})

    assert spell_names(text[: text.index("c:")], dbt_project) == (
        'a:\n  model: "s.t"\n  inputs: {"lake.x": [{t: 1}], \'s.t\': [], other: []}\nb: {model: s.t}\n'
    )
    assert spell_names(text, dbt_project) == text


def test_only_the_query_of_a_call_is_spelled_as_spark_reads_it() -> None:
    calls = tuple(DbtCall(call=text, text=text, error="") for text in ("iff(a, b, c)", "\n(select iff(a, b, c))"))
    spelled = project().model_copy(update={"calls": calls}).change_texts(lambda text: text.replace("iff", "if"))

    assert [(call.text, call.query) for call in spelled.calls] == [
        ("iff(a, b, c)", ""),
        ("\n(select iff(a, b, c))", "\n(select if(a, b, c))"),
    ]


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("a: {model: &m t}\nb: {model: *m}\n", 'a: {model: &m "s.t"}\nb: {model: *m}\n'),
        ("a:\n  ? [t]\n  : 1\n  model: t\n", "a:\n  ? [t]\n  : 1\n  model: t\n"),  # which its reader refuses
        ("[" * 2000, "[" * 2000),
        ("- t\n", "- t\n"),
        ("", ""),
    ],
)
def test_a_name_is_replaced_where_it_stands_alone(text: str, spelled: str) -> None:
    assert spell_names(text, project()) == spelled


def test_the_call_of_a_macro_has_the_text_that_dbt_made() -> None:
    text = "a:\n  macro: m\n  call: >\n    {{ m() }}\n  outputs: {text: x}\nb: {macro: m, call: '{{ m(1) }}'}\n"
    assert macro_calls(text) == ("{{ m() }}\n", "{{ m(1) }}")
    call = DbtCall(call="{{ m() }}\n", text="x", error="", query="y")
    spelled = spell_names(text, project().model_copy(update={"calls": (call,)})).splitlines()

    assert spelled[2] == '  call: {"call": "{{ m() }}\\n", "text": "x", "query": "y", "error": ""}'
    assert spelled.index("  outputs: {text: x}") == 4
    assert "a manifest stands for dbt here" in spelled[5]


@pytest.mark.parametrize(
    ("values", "settings", "why"),
    [
        ({"error": "it overrides variables"}, {}, "it overrides variables"),
        ({"model": "model.shop.gone"}, {}, "its model is not compiled"),
        ({"expect": DbtFixture(rows=({"a": 1}, {"b": 2}))}, {}, "do not name the same columns"),
        ({"is_incremental": True}, {**LATER, "later": "select 2 as a"}, "`this` has no rows"),
        ({}, {**LATER, "incremental_strategy": "microbatch"}, "is filled by batches"),
        ({"load": {"tables": []}}, {}, "`tables` is no key of `config.meta.mergeplan`"),
        ({"load": {"start": "2026-01-01"}}, {}, "has no `table`"),
        ({"load": True}, {}, "is no mapping"),
    ],
)
def test_a_test_that_would_ask_something_else_does_not_run(
    values: dict[str, Any], settings: dict[str, Any], why: str
) -> None:
    with pytest.raises(ProjectError, match=why) as error:
        unit_test_body(unit_test(**values), project(**settings))
    assert str(error.value).startswith("models/t.yml:1: The unit test `adds` does not run: ")


def test_each_test_stands_on_its_line() -> None:
    tests = [(unit_test(name=name, id=f"unit_test.shop.t.{name}"), {"model": "s.t"}) for name in ("b", "a", "gone")]
    source = "unit_tests:\n  - name: a\n    model: t\n  - {model: t, name: 'b'}\n"

    assert (
        unit_test_text(tests, source)
        == '"t.gone": {"model": "s.t"}\n"t.a": {"model": "s.t"}\n\n"t.b": {"model": "s.t"}\n'
    )
