"""Renames across files: the plan of the new texts is just the rename, or nothing is renamed."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from mergeplan.planner.errors import RequestError
from mergeplan.planner.lsp.editor import Editor
from mergeplan.planner.lsp.navigation import find_definitions, find_references, target_at
from mergeplan.planner.lsp.rename import rename_edits
from mergeplan.planner.lsp.texts import Edit, apply_edits
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import Category
from mergeplan.planner.session.options import PlanOptions
from mergeplan.planner.session.use_cases.planning import check_request, make_plan
from mergeplan.planner.session.workspace import Workspace
from tests.planner.lsp.conftest import LATEST, ORDERS, TEST, TOTALS, write_files

PATHS = {"models/orders.sql": ORDERS, "models/totals.sql": TOTALS, "models/latest.sql": LATEST}
STAR = "MODEL (name shop.star); SELECT"
CALL = """test_call:
  macro: safe_add
  call: SELECT @SAFE_ADD(amount, twice) AS x FROM shop.orders
  inputs: {shop.orders: [{amount: 1, twice: 2}]}
  outputs: {query: [{x: 3}]}
"""


def rename(editor: Editor, path: str, word: str, new: str, occurrence: int = 0) -> dict[str, str]:
    """The files' texts after the name at a word was renamed."""
    view = editor.view
    assert view is not None
    text = view.text(path) or (editor.root / path).read_text()
    at = -1
    for _ in range(occurrence + 1):
        at = text.index(word, at + 1)
    place = target_at(view, path, text, at + 1)
    assert place is not None
    edits = rename_edits(view, place[0], new, editor.live.clock())
    by_path: dict[str, list[Edit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit)
    return {path: apply_edits((editor.root / path).read_text(), edits) for path, edits in by_path.items()}


def plan(editor: Editor) -> Plan:
    """The plan of the files on the disk."""
    work = Workspace(editor.settings, only_looks=True)
    with closing(work):
        assert not work.project.refused
        return make_plan(work, check_request(work, PlanOptions()), work.project.models)


def test_a_column_is_renamed_in_every_model_and_test_that_names_it(editor: Editor) -> None:
    texts = rename(editor, "models/orders.sql", "amount", "value", occurrence=1)

    assert texts["models/orders.sql"] == ORDERS.replace("SELECT id, day, amount,", "SELECT id, day, amount AS value,")
    assert texts["models/totals.sql"] == TOTALS.replace("o.amount", "o.value")
    assert texts["tests/test_totals.yaml"] == TEST.replace("01, amount: 2", "01, value: 2").replace(
        "01, amount: 3", "01, value: 3"
    )


def test_a_column_is_renamed_in_the_rows_of_its_table(editor: Editor) -> None:
    text = "a:\n  model: shop.orders\n  this: [{twice: 1}]\n  outputs: {table: [{twice: 2}], query: [{twice: 2}]}\n"
    write_files(editor.root, {"tests/test_load.yaml": text})
    editor.live.load()

    assert rename(editor, "models/orders.sql", "twice", "two")["tests/test_load.yaml"] == text.replace("twice", "two")


def test_the_plan_of_a_renamed_column_is_just_that(editor: Editor) -> None:
    write_files(editor.root, rename(editor, "models/orders.sql", "twice", "doubled"))
    changes = {change.name: change for change in plan(editor).changes}

    assert changes["shop.orders"].columns.added == {"doubled"}
    assert changes["shop.orders"].columns.removed == {"twice"}
    assert changes["shop.latest"].category is Category.EQUIVALENT
    assert not changes["shop.latest"].recomputed
    assert {name for name, change in changes.items() if change.recomputed} == {"shop.orders"}


def test_an_output_that_is_a_bare_column_keeps_its_name(editor: Editor) -> None:
    texts = rename(editor, "models/latest.sql", "twice", "doubled")

    assert texts["models/latest.sql"] == LATEST.replace("SELECT id, twice", "SELECT id, doubled AS twice")


def test_a_cte_is_renamed_in_its_query(editor: Editor) -> None:
    texts = rename(editor, "models/orders.sql", "priced", "cheap")

    assert texts == {"models/orders.sql": ORDERS.replace("priced", "cheap")}


def test_a_column_of_a_cte_is_renamed_in_its_query(editor: Editor) -> None:
    texts = rename(editor, "models/orders.sql", "amount", "cost", occurrence=0)

    expected = ORDERS.replace("price AS amount", "price AS cost").replace(
        "day, amount, amount * 2", "day, cost AS amount, cost * 2"
    )
    assert texts == {"models/orders.sql": expected}


def test_a_model_is_renamed_in_its_block_its_readers_and_its_tests(editor: Editor) -> None:
    texts = rename(editor, "models/orders.sql", "shop.orders", "shop.sales")
    write_files(editor.root, texts)

    assert {path: text.count("shop.sales") for path, text in texts.items()} == {
        "models/orders.sql": 1,
        "models/totals.sql": 1,
        "models/latest.sql": 1,
        "tests/test_totals.yaml": 1,
    }
    assert {"shop.orders", "shop.sales"} <= {change.name for change in plan(editor).changes}


@pytest.mark.parametrize(
    ("files", "word", "new", "reason"),
    [
        ({"models/star.sql": f"{STAR} * FROM shop.orders"}, "twice", "two", "expand it first"),
        ({"models/star.sql": f"{STAR} @EACH([1], x -> twice AS t) FROM shop.orders"}, "twice", "two", "given `twice`"),
        ({"models/star.sql": f"{STAR} @EVAL(twice) AS t FROM shop.orders"}, "twice", "two", "cannot be opened"),
        ({"tests/test_macro.yaml": CALL}, "twice", "two", "in the call of a macro"),
        ({}, "twice", "amount", "a column `amount` already"),
        ({}, "twice", "two words", "not a plain name"),
        ({}, "shop.orders", "shop.totals", "already a model"),
    ],
)  # fmt: skip
def test_what_cannot_be_renamed_soundly_is_refused(
    editor: Editor, files: dict[str, str], word: str, new: str, reason: str
) -> None:
    write_files(editor.root, files)
    editor.live.load()

    with pytest.raises(RequestError, match=reason):
        rename(editor, "models/orders.sql", word, new)


def test_definitions_and_references_cross_files(editor: Editor, tmp_path: Path) -> None:
    view = editor.view
    assert view is not None
    place = target_at(view, "models/totals.sql", TOTALS, TOTALS.index("o.amount") + 3)
    assert place is not None

    (definition,) = find_definitions(view, place[0])
    named = [(span.path, (view.text(span.path) or "")[span.span.start : span.span.end])
             for span in find_references(view, place[0])]  # fmt: skip

    assert (definition.path, ORDERS[definition.span.start : definition.span.end]) == ("models/orders.sql", "amount")
    assert named == [("models/orders.sql", "amount"), ("models/totals.sql", "amount")]
