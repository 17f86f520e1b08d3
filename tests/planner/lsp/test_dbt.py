"""A dbt project in an editor, whose compiled nodes are those that a dbt recorded."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mergeplan.planner.lsp.editor import Editor
from mergeplan.planner.lsp.questions import hover_at
from mergeplan.planner.project.dbt.inputs import PYTHON
from mergeplan.planner.session.settings import SessionSettings
from tests.planner.dbt.recorded import SHOP, record, times_asked
from tests.planner.lsp.conftest import ask_effects, promote
from tests.planner.session.conftest import refuse_engine

PATH = "models/total.sql"


def test_a_dbt_project_has_lenses_and_hovers_of_what_dbt_compiled_when_it_was_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "shop"
    shutil.copytree(SHOP, root)
    program = record(tmp_path, root=root)
    monkeypatch.setenv(PYTHON, str(program))
    settings = SessionSettings(root.resolve(), open_engine=refuse_engine)
    promote(settings)
    asked = times_asked(program)
    text = (root / PATH).read_text()

    stranger = Editor(settings)
    stranger.judge(PATH, text)
    assert stranger.view is None
    assert times_asked(program) == asked

    editor = Editor(settings, trusted=True)
    assert not [diagnostic for diagnostic in editor.judge(PATH, text) if diagnostic.severity == "error"]
    assert ask_effects(editor, PATH) == ["As in prod"]
    loads = editor.live.loads
    editor.judge(PATH, text + "-- typed\n")
    assert ask_effects(editor, PATH)[0].startswith("As saved: ")
    assert editor.live.loads == loads
    answer = hover_at(editor, PATH, text, text.index("'daily'") + 2)
    assert answer is not None
    assert "**shop.daily** · INCREMENTAL" in answer[0]
