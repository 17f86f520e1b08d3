"""Unsaved texts in an editor: what is wrong with them, and what their edits do to prod."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mergeplan.planner.lsp.editor import Editor
from mergeplan.planner.lsp.project_files import is_of_project
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.project.lineage import FollowedModels
from mergeplan.planner.session.settings import SessionSettings
from tests.planner.lsp.conftest import ORDERS, TOTALS, ask_effects

PATH = "models/orders.sql"


def test_a_file_that_nobody_edited_is_as_in_prod(editor: Editor) -> None:
    assert editor.judge(PATH, ORDERS) == ()
    assert ask_effects(editor, PATH) == ["As in prod"]


def test_an_added_column_keeps_the_tables_of_what_reads_the_model(editor: Editor) -> None:
    assert editor.judge(PATH, ORDERS.replace("AS twice", "AS twice, 1 AS tax")) == ()

    (text,) = ask_effects(editor, PATH)
    assert text == (
        "Non-breaking: Only adds `tax`; the rows and the other columns stay as they are. · computes 1 table (~3 s) · "
        "2 models downstream keep their tables"
    )


def test_an_altered_column_computes_what_reads_it(editor: Editor) -> None:
    editor.judge(PATH, ORDERS.replace("amount, amount * 2", "amount + 1 AS amount, amount * 2"))

    (text,) = ask_effects(editor, PATH)
    assert text.startswith("Breaking: ")
    assert "computes 2 tables (~6 s) · 1 model downstream keeps its table" in text


def test_another_layout_is_equivalent_and_computes_nothing(editor: Editor) -> None:
    editor.judge(PATH, ORDERS.replace("SELECT id, day, amount, amount * 2", "SELECT id, day,\n amount, (amount * 2)"))

    (text,) = ask_effects(editor, PATH)
    assert text.startswith("Equivalent: ")
    assert "computes nothing" in text


def test_a_syntax_error_is_shown_at_its_place_and_the_project_stays(editor: Editor) -> None:
    text = ORDERS.replace("FROM priced", "FROM priced WHERE (")
    (diagnostic,) = editor.judge(PATH, text)

    assert diagnostic.message.startswith("The query is not valid Spark SQL")
    assert editor.view is not None
    assert "shop.totals" in editor.view.project.models
    assert editor.judge(PATH, ORDERS) == ()


def test_an_error_of_a_property_is_shown_at_its_word(editor: Editor) -> None:
    text = ORDERS.replace("kind FULL", "kind FULLY")
    (diagnostic,) = editor.judge(PATH, text)

    assert "FULLY" in diagnostic.message
    assert text[diagnostic.span.start : diagnostic.span.end] == "FULLY"


def test_unknown_columns_and_tables_are_shown_where_no_rule_asks_for_them(editor: Editor) -> None:
    text = TOTALS.replace("o.amount", "o.amunt")
    (column,) = editor.judge("models/totals.sql", text)
    (table,) = editor.judge("models/totals.sql", TOTALS.replace("shop.orders AS", "shop.elsewhere AS"))

    assert "has a column `amunt`" in column.message
    assert text[column.span.start : column.span.end].endswith("amunt")
    assert "neither a model nor declared" in table.message


def test_only_the_edited_file_is_read_anew(editor: Editor) -> None:
    for number in range(5):
        editor.judge(PATH, ORDERS.replace("AS twice", f"AS twice, {number} AS tax"))

    assert editor.live.loads == 1


def test_what_is_kept_between_edits_is_what_reading_all_would_give(editor: Editor) -> None:
    edits = {
        PATH: ORDERS.replace("AS twice", "AS doubled, 1 AS tax"),
        "models/latest.sql": "MODEL (name shop.latest, kind VIEW); SELECT * FROM shop.orders",
        "models/totals.sql": "MODEL (name shop.totals, kind FULL); SELECT tax FROM shop.latest",
    }
    assert editor.view is not None
    for name in editor.view.project.models:
        editor.view.columns(name)
    for path, text in edits.items():
        assert editor.judge(path, text) == ()
    view = editor.view
    graph = graph_of(view.project.models)
    fresh = FollowedModels(graph)

    assert editor.live.loads == 1
    assert (view.graph.parents, view.graph.children, view.graph.order) == (graph.parents, graph.children, graph.order)
    assert {name: view.lineage[name].table for name in graph.order} == {name: fresh[name].table for name in graph.order}
    assert view.columns("shop.latest") == ("id", "day", "amount", "doubled", "tax")


def test_a_file_that_is_broken_when_it_is_opened_comes_back(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / PATH).write_text("MODEL (name shop.orders")
    fresh = Editor(editor.settings, trusted=True)

    assert fresh.judge(PATH, "MODEL (name shop.orders")
    assert fresh.judge(PATH, ORDERS) == ()
    assert fresh.view is not None
    assert "shop.totals" in fresh.view.project.models


def test_two_models_of_one_name_are_an_error_of_the_text(editor: Editor) -> None:
    (diagnostic,) = editor.judge("models/totals.sql", "MODEL (name shop.orders, kind FULL); SELECT 1 AS one")

    assert "already defined at models/orders.sql" in diagnostic.message


def test_a_text_that_is_huge_is_named_and_not_read(editor: Editor) -> None:
    (diagnostic,) = editor.judge(PATH, ORDERS + "-- " + "x" * 10_000_000)

    assert "more than 1,000,000 characters" in diagnostic.message
    assert editor.judge(PATH, ORDERS) == ()


def test_yaml_files_are_judged_while_they_are_typed(editor: Editor) -> None:
    (test,) = editor.judge("tests/test_totals.yaml", "test_totals:\n  modle: shop.totals\n")
    config = (editor.root / "config.yaml").read_text()
    (key,) = editor.judge("config.yaml", config + "modle_defaults: {}\n")

    assert "modle" in test.message
    assert "modle_defaults" in key.message


def test_none_of_a_folders_code_runs_until_it_is_trusted(settings: SessionSettings, tmp_path: Path) -> None:
    (tmp_path / "macros").mkdir()
    (tmp_path / "macros" / "m.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    stranger = Editor(replace(settings))
    stranger.judge(PATH, ORDERS)

    assert ask_effects(stranger, PATH)[0].startswith("Trust the folder")
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / ".mergeplan" / "state.db").exists()
    stranger.trust()
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("path", "expected"),
    [("models/a/b.sql", True), ("tests/t.yaml", True), ("config.yaml", True), ("external_models.yaml", True),
     ("models/m.py", True), ("signals/m.py", False), ("config.py", False), ("notes.sql", False),
     ("target/run.sql", False)],
)  # fmt: skip
def test_texts_of_the_project_alone_are_judged(path: str, expected: bool) -> None:
    assert is_of_project(path) is expected


def test_a_circle_and_a_removed_model_have_an_answer(editor: Editor) -> None:
    (circle,) = editor.judge("models/daily.sql", "MODEL (name shop.daily); SELECT twice FROM shop.latest")
    renamed = editor.judge(PATH, ORDERS.replace("shop.orders", "shop.sales"))

    assert "in a cycle" in circle.message
    assert renamed == ()
    assert ask_effects(editor, PATH)[0].startswith(("New model", "No plan"))
