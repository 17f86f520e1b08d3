"""What a folder or a client may do to the server: odd texts, many projects, storms of edits, a client that dies."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lsprotocol import types as lsp

from mergeplan.planner.lsp.editor import Editor
from mergeplan.planner.session.settings import SessionSettings
from tests.planner.lsp.client import PATIENCE, Session, talk
from tests.planner.lsp.conftest import LATEST, MODELS, ORDERS, write_files
from tests.planner.session.conftest import refuse_engine
from tests.planner.shop import FILES

PATH = "models/orders.sql"
UMLAUT = ORDERS.replace("SELECT id, day, amount,", "SELECT '😀 für' AS `größe`, id, day, amount,")


@pytest.mark.prove
def test_columns_are_counted_in_utf_16_whatever_the_client_likes(settings: SessionSettings) -> None:
    async def story(session: Session) -> None:
        assert session.result.capabilities.position_encoding == lsp.PositionEncodingKind.Utf16
        session.open(PATH, UMLAUT)
        line = UMLAUT.split("\n")[8]
        before = line[: line.index("twice") + 1]
        position = lsp.Position(8, len(before.encode("utf-16-le")) // 2)
        document = lsp.TextDocumentIdentifier(session.uri(PATH))
        hover = await session.client.text_document_hover_async(lsp.HoverParams(document, position))
        assert hover is not None
        assert "shop.orders.twice" in hover.contents.value
        assert (hover.range.start.character, hover.range.end.character) == (
            position.character - 1,
            position.character + 4,
        )

    talk(settings.root, story)


@pytest.mark.prove
def test_line_ends_and_a_byte_order_mark_change_nothing(settings: SessionSettings) -> None:
    text = "\ufeff" + ORDERS.replace("\n", "\r\n")
    (settings.root / PATH).write_bytes(text.encode())

    async def story(session: Session) -> None:
        session.open(PATH, text)
        assert await session.next_diagnostics(PATH) == []
        where = lsp.TextDocumentIdentifier(session.uri(PATH))
        renamed = await session.client.text_document_rename_async(
            lsp.RenameParams(where, lsp.Position(8, 39), "doubled")
        )
        (own,) = [change for change in renamed.document_changes if change.text_document.uri == session.uri(PATH)]
        assert own.edits[0].range.start == lsp.Position(8, 38)
        symbols = await session.client.text_document_document_symbol_async(lsp.DocumentSymbolParams(where))
        assert symbols[0].range.start == lsp.Position(1, 7)

    talk(settings.root, story)


@pytest.mark.prove
def test_a_storm_of_edits_is_answered_for_its_last_text(settings: SessionSettings) -> None:
    async def story(session: Session) -> None:
        session.open(PATH, ORDERS)
        assert await session.next_diagnostics(PATH) == []
        document = lsp.TextDocumentIdentifier(session.uri(PATH))
        questions = []
        for number in range(200):
            session.change(PATH, ORDERS.replace("AS twice", f"AS twice, {number} AS"), number + 2)
            params = lsp.CodeLensParams(document)
            questions.append(asyncio.ensure_future(session.client.text_document_code_lens_async(params)))
            await asyncio.sleep(0.01)
            session.client.cancel_request(lsp.CancelParams(str(number)))
            questions[-1].cancel()
        session.change(PATH, ORDERS.replace("o.amount", "amunt").replace("price AS", "prize AS"), 300)
        began, messages = time.monotonic(), []
        while not any("prize" in message for message in messages):
            messages = await session.next_diagnostics(PATH)
        assert time.monotonic() - began < PATIENCE / 4

    talk(settings.root, story)


@pytest.mark.prove
def test_a_file_that_is_renamed_while_it_is_open_is_the_same_model(settings: SessionSettings) -> None:
    new = "models/sales/orders.sql"

    async def story(session: Session) -> None:
        session.open(PATH, ORDERS)
        assert await session.next_diagnostics(PATH) == []
        (settings.root / "models/sales").mkdir()
        (settings.root / PATH).rename(settings.root / new)
        closed = lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(session.uri(PATH)))
        session.client.text_document_did_close(closed)
        session.open(new, ORDERS)
        changes = [lsp.FileEvent(session.uri(PATH), lsp.FileChangeType.Deleted),
                   lsp.FileEvent(session.uri(new), lsp.FileChangeType.Created)]  # fmt: skip
        session.client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams(changes))
        while await session.next_diagnostics(new):
            pass
        where = session.place(new, ORDERS, "shop.daily")
        assert await session.client.text_document_definition_async(lsp.DefinitionParams(**where))

    talk(settings.root, story)


@pytest.mark.prove
def test_each_of_many_projects_has_its_own_names(tmp_path: Path) -> None:
    for number in range(20):
        table = f"MODEL (name s{number}.a, kind FULL); SELECT 1 AS c{number}"
        reader = f"MODEL (name s{number}.b, kind FULL); SELECT c{number} FROM s{number}.a"
        config = "gateways: {local: {connection: {type: spark}}}\nmodel_defaults: {dialect: spark}\n"
        write_files(tmp_path / str(number), {"config.yaml": config, "models/a.sql": table, "models/b.sql": reader})

    async def story(session: Session) -> None:
        listed = [
            session.client.protocol.send_request_async("mergeplan/tests", {"root": session.uri(str(number))})
            for number in range(20)
        ]
        for number in range(20):
            session.open(f"{number}/models/b.sql", (tmp_path / f"{number}/models/b.sql").read_text())
        for number in range(20):
            assert await session.next_diagnostics(f"{number}/models/b.sql") == []
        assert await asyncio.wait_for(asyncio.gather(*listed), PATIENCE) == [[]] * 20
        found_models = await session.client.workspace_symbol_async(lsp.WorkspaceSymbolParams(".b"))
        assert len(found_models) == 20

    talk(tmp_path, story)


def test_a_configuration_that_raises_is_named_and_is_not_run_by_each_edit(tmp_path: Path) -> None:
    code = "from sqlmesh.core.config import Config\nraise ValueError('no')\n"
    write_files(tmp_path, {**{name: text for name, text in FILES.items() if name != "config.yaml"}, **MODELS})
    write_files(tmp_path, {"config.py": code})
    (tmp_path / "config.yaml").unlink(missing_ok=True)
    editor = Editor(SessionSettings(tmp_path.resolve(), open_engine=refuse_engine), trusted=True)

    (diagnostic,) = editor.judge(PATH, ORDERS)
    loads = editor.live.loads
    for number in range(5):
        assert editor.judge(PATH, f"{ORDERS} -- {number}")
    assert "cannot be opened: config.py" in diagnostic.message
    assert editor.live.loads == loads
    write_files(tmp_path, {"config.yaml": FILES["config.yaml"]})
    (tmp_path / "config.py").unlink()
    assert editor.judge(PATH, ORDERS, saved=True) == ()


def test_a_client_that_dies_leaves_no_server(settings: SessionSettings) -> None:
    environment = {**os.environ, "MERGEPLAN_HOME": str(settings.root / ".mergeplan"), "MERGEPLAN_ISOLATION": "none"}
    command = [sys.executable, "-m", "mergeplan", "lsp"]
    body = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}'
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
        server.stdin.flush()
        assert server.stdout.readline().startswith(b"Content-Length")
        server.stdin.write(b"Content-Length: 900\r\n\r\n{")  # in the middle of a message
        server.stdin.close()
        server.stdout.close()
        assert server.wait(PATIENCE / 4) is not None


def test_odd_names_of_files_are_read(settings: SessionSettings) -> None:
    names = ["models/äö ü.sql", "models/a b/c#d.sql", "models/100%.sql"]
    texts = {name: LATEST.replace("shop.latest", f"shop.odd{number}") for number, name in enumerate(names)}
    write_files(settings.root, texts)

    async def story(session: Session) -> None:
        for name, text in texts.items():
            session.open(name, text)
            assert await session.next_diagnostics(name) == []
            where = session.place(name, text, "shop.orders")
            (place,) = await session.client.text_document_definition_async(lsp.DefinitionParams(**where))
            assert place.uri == session.uri(PATH)

    talk(settings.root, story)
