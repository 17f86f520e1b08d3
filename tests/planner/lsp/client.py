"""A client of `mergeplan lsp` over standard input and output."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

PATIENCE = 120.0  # seconds for an answer, on a machine that does other things


class Session:
    """A client of one server, with what the server said by itself."""

    def __init__(self, root: Path, *, trusted: bool = True) -> None:
        self.root, self.trusted = root, trusted
        self.client = LanguageClient("test", "1")
        self.diagnostics: dict[str, asyncio.Queue[list[lsp.Diagnostic]]] = {}
        self.effects: asyncio.Queue[Any] = asyncio.Queue()

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(params: lsp.PublishDiagnosticsParams) -> None:
            self.diagnostics.setdefault(params.uri, asyncio.Queue()).put_nowait(list(params.diagnostics))

        @self.client.feature("mergeplan/effects")
        def effects(params: Any) -> None:
            self.effects.put_nowait(params)

    async def __aenter__(self) -> Session:
        environment = {**os.environ, "MERGEPLAN_HOME": str(self.root / ".mergeplan"), "MERGEPLAN_ISOLATION": "none"}
        await self.client.start_io(sys.executable, "-m", "mergeplan", "lsp", env=environment)
        options = {"trusted": self.trusted}
        likes = [lsp.PositionEncodingKind.Utf8, lsp.PositionEncodingKind.Utf16]  # as Neovim and Helix do
        capabilities = lsp.ClientCapabilities(general=lsp.GeneralClientCapabilities(position_encodings=likes))
        params = lsp.InitializeParams(capabilities, initialization_options=options)
        self.result = await asyncio.wait_for(self.client.initialize_async(params), PATIENCE)
        self.client.initialized(lsp.InitializedParams())
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.wait_for(self.client.shutdown_async(None), PATIENCE)
        self.client.exit(None)
        await self.client.stop()

    def uri(self, path: str) -> str:
        return (self.root / path).as_uri()

    def open(self, path: str, text: str) -> None:
        document = lsp.TextDocumentItem(self.uri(path), "sql", 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(document))

    def change(self, path: str, text: str, version: int = 2) -> None:
        document = lsp.VersionedTextDocumentIdentifier(version, self.uri(path))
        whole = lsp.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [whole]))

    async def next_diagnostics(self, path: str) -> list[str]:
        queue = self.diagnostics.setdefault(self.uri(path), asyncio.Queue())
        return [diagnostic.message for diagnostic in await asyncio.wait_for(queue.get(), PATIENCE)]

    async def lenses(self, path: str) -> list[str]:
        params = lsp.CodeLensParams(lsp.TextDocumentIdentifier(self.uri(path)))
        lenses = await asyncio.wait_for(self.client.text_document_code_lens_async(params), PATIENCE)
        return [lens.command.title for lens in lenses or () if lens.command]

    def place(self, path: str, text: str, word: str) -> dict[str, Any]:
        before = text[: text.index(word) + 1]
        position = lsp.Position(before.count("\n"), len(before.rpartition("\n")[2]))
        return {"text_document": lsp.TextDocumentIdentifier(self.uri(path)), "position": position}


def talk(root: Path, story: Callable[[Session], Awaitable[None]], *, trusted: bool = True) -> None:
    """One session."""

    async def session() -> None:
        async with Session(root, trusted=trusted) as opened:
            await story(opened)

    asyncio.run(session())
