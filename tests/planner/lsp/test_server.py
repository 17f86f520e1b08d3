"""A client's session with `mergeplan lsp` over standard input and output."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from mergeplan.planner.session.settings import SessionSettings
from tests.planner.lsp.client import PATIENCE, Session, talk
from tests.planner.lsp.conftest import LATEST, ORDERS, TOTALS, promote


def test_a_session_of_typing_lenses_hover_rename_and_rendering(settings: SessionSettings) -> None:
    promote(settings)

    async def story(session: Session) -> None:
        client, path = session.client, "models/orders.sql"
        session.open(path, ORDERS)
        assert await session.next_diagnostics(path) == []
        assert (await session.lenses(path))[:1] == ["As in prod"]

        session.change(path, ORDERS.replace("FROM priced", "FROM (priced"))
        session.change(path, edited := ORDERS.replace("AS twice", "AS twice, 1 AS tax"), 3)
        assert (await session.lenses(path))[0].startswith("Non-breaking: Only adds `tax`")
        effects = await asyncio.wait_for(session.effects.get(), PATIENCE)
        assert effects.effects[0].model == "shop.orders"

        hover = await client.text_document_hover_async(lsp.HoverParams(**session.place(path, edited, "twice")))
        assert hover is not None
        assert "shop.orders.twice" in hover.contents.value
        rename = lsp.RenameParams(new_name="doubled", **session.place(path, edited, "twice"))
        renamed = await client.text_document_rename_async(rename)
        assert renamed is not None
        assert {change.text_document.uri for change in renamed.document_changes} == {
            session.uri(path), session.uri("models/latest.sql")
        }  # fmt: skip
        with pytest.raises(JsonRpcException, match="a column `day` already"):
            await client.text_document_rename_async(
                lsp.RenameParams(new_name="day", **session.place(path, edited, "twice"))
            )
        command = lsp.ExecuteCommandParams("mergeplan.render", [session.uri(path), "shop.orders"])
        rendered = await client.workspace_execute_command_async(command)
        assert "amount * 2 AS twice" in rendered["sql"]

    talk(settings.root, story)


def test_every_question_has_an_answer(settings: SessionSettings) -> None:
    async def story(session: Session) -> None:
        client, path = session.client, "models/totals.sql"
        session.open(path, TOTALS)
        document = lsp.TextDocumentIdentifier(session.uri(path))
        place = session.place(path, TOTALS, "o.amount")
        everything = lsp.Range(lsp.Position(0, 0), lsp.Position(3, 0))
        context = lsp.CodeActionContext([])

        completed = await client.text_document_completion_async(lsp.CompletionParams(**place))
        definition = await client.text_document_definition_async(
            lsp.DefinitionParams(**session.place(path, TOTALS, "shop.orders"))
        )
        references = await client.text_document_references_async(
            lsp.ReferenceParams(context=lsp.ReferenceContext(True), **session.place(path, TOTALS, "shop.orders"))
        )
        symbols = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document))
        found_models = await client.workspace_symbol_async(lsp.WorkspaceSymbolParams("latest"))
        folds = await client.text_document_folding_range_async(lsp.FoldingRangeParams(document))
        hints = await client.text_document_inlay_hint_async(lsp.InlayHintParams(document, everything))
        tokens = await client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(document))
        layout = await client.text_document_formatting_async(
            lsp.DocumentFormattingParams(document, lsp.FormattingOptions(2, True))
        )
        actions = await client.text_document_code_action_async(lsp.CodeActionParams(document, everything, context))

        assert completed and completed.items
        assert definition[0].uri == session.uri("models/orders.sql")
        assert {reference.uri for reference in references} >= {session.uri(path), session.uri("models/latest.sql")}
        assert [symbol.name for symbol in symbols] == ["shop.totals", "day", "amount", "orders"]
        assert [symbol.name for symbol in found_models] == ["shop.latest"]
        assert folds and hints and tokens.data and layout[0].new_text.startswith("MODEL (\n")
        assert not actions

    talk(settings.root, story)


@pytest.mark.prove
def test_malformed_and_huge_files_end_nothing(settings: SessionSettings) -> None:
    values = ",\n".join(f"({number}, 'x{number}')" for number in range(10_000))
    texts = {
        "models/a.sql": "MODEL (" * 500,
        "models/b.sql": "\x00\ud7ff\x01" * 1000,
        "models/c.sql": f"MODEL (name shop.c, kind FULL);\nSELECT * FROM VALUES {values} AS t(a, b)",
        "models/d.sql": "MODEL (name shop.d);\nSELECT " + "x" * 10_000_000,
        "models/e.sql": "MODEL (name shop.e);\nSELECT " + "(" * 5000 + "1" + ")" * 5000,
        "tests/f.yaml": "a: [" * 2000,
    }

    async def story(session: Session) -> None:
        for path, text in texts.items():
            session.open(path, text)
        for path in texts:
            await session.next_diagnostics(path)
        session.open("models/latest.sql", LATEST)
        assert await session.next_diagnostics("models/latest.sql") == []

    talk(settings.root, story)


def test_a_strangers_folder_is_opened_without_its_code(settings: SessionSettings) -> None:
    ran = settings.root / "ran"
    (settings.root / "macros").mkdir()
    (settings.root / "macros" / "m.py").write_text(f"open({str(ran)!r}, 'w').close()\n")

    async def story(session: Session) -> None:
        session.open("models/latest.sql", LATEST)
        assert (await session.lenses("models/latest.sql"))[0].startswith("Trust the folder")
        assert not ran.exists()
        session.client.protocol.notify("mergeplan/trust", {})
        for _ in range(600):
            if ran.exists():
                break
            await asyncio.sleep(0.1)
        assert ran.exists()

    talk(settings.root, story, trusted=False)


def test_the_unit_tests_of_a_project_are_listed_before_a_file_is_open(settings: SessionSettings) -> None:
    async def story(session: Session) -> None:
        def ask(root: Path) -> Awaitable[Any]:
            return session.client.protocol.send_request_async("mergeplan/tests", {"root": root.as_uri()})

        test = {"name": "test_totals", "path": "tests/test_totals.yaml", "line": 0, "model": "shop.totals"}
        assert await asyncio.wait_for(ask(settings.root), PATIENCE) == [test]
        with pytest.raises(JsonRpcException, match="is no project"):
            await asyncio.wait_for(ask(settings.root / "models"), PATIENCE)

    talk(settings.root, story, trusted=False)
