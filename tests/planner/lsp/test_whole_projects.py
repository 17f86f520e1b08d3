"""Whole projects in a client's session: every model of the quickstart and of the project with everything is opened,
asked about and broken, over standard input and output."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from lsprotocol import types as lsp

from mergeplan.planner.project.scaffold import Wishes, write_project
from mergeplan.planner.session.settings import SessionSettings
from tests.planner.lsp.client import Session, talk
from tests.planner.lsp.conftest import promote
from tests.planner.session.conftest import refuse_engine
from tests.sampling import prove_rest

EVERYTHING = Path(__file__).parents[2] / "projects" / "everything"


def open_project(name: str, folder: Path) -> SessionSettings:
    """The quickstart, or the project with everything, whose prod is in the state alone."""
    if name == "quickstart":
        write_project(folder, Wishes())
    else:
        shutil.copytree(EVERYTHING, folder)
    settings = SessionSettings(folder.resolve(), open_engine=refuse_engine)
    promote(settings)
    return settings


@pytest.mark.parametrize("name", prove_rest(["quickstart", "everything"]))
def test_each_model_of_a_whole_project_has_its_effect_and_no_error(name: str, tmp_path: Path) -> None:
    settings = open_project(name, tmp_path / name)
    files = sorted(path.relative_to(settings.root).as_posix() for path in settings.root.glob("models/**/*.sql"))

    async def story(session: Session) -> None:
        for path in files:
            text = (settings.root / path).read_text()
            session.open(path, text)
            assert await session.next_diagnostics(path) == [], path
            assert (await session.lenses(path))[:2] == ["As in prod", "Render"], path
            document = lsp.TextDocumentIdentifier(session.uri(path))
            place = lsp.Position(text.count("\n"), 0)
            assert await session.client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document)), path
            await session.client.text_document_completion_async(lsp.CompletionParams(document, place))
            await session.client.text_document_hover_async(lsp.HoverParams(document, place))

            session.change(path, text.rstrip().rstrip(";") + "\n)")
            assert await session.next_diagnostics(path), path
            session.change(path, text, 3)
            assert await session.next_diagnostics(path) == [], path

    talk(settings.root, story)
