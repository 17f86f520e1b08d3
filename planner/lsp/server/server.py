"""The language server: its documents are judged and planned off the event loop, only with their newest text."""

import asyncio
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method

from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.lsp.project_view import ProjectView
from mergeplan.planner.lsp.server import conversions as to
from mergeplan.planner.lsp.server.desk import Desk, OpenDocument
from mergeplan.planner.session.settings import SessionSettings
from mergeplan.planner.versions import mergeplan_version

T = TypeVar("T")
REFUSED = -32803  # RequestFailed
DELAY = 0.15  # seconds after a keystroke, before the plan is requested


class Protocol(LanguageServerProtocol):
    """The protocol with columns in UTF-16, which every client has to support: our columns are counted only so."""

    @lsp_method(lsp.INITIALIZE)
    def lsp_initialize(self, params: lsp.InitializeParams) -> Generator[Any, Any, lsp.InitializeResult]:
        """Initialize the connection, whatever other encodings the client prefers."""
        if params.capabilities.general is not None:
            params.capabilities.general.position_encodings = [lsp.PositionEncodingKind.Utf16]
        return (yield from super().lsp_initialize(params))


class Server(LanguageServer):
    def __init__(self, settings: SessionSettings) -> None:
        super().__init__("mergeplan", mergeplan_version(), protocol_cls=Protocol)
        self.desk = Desk(settings)
        self.background: set[asyncio.Task[None]] = set()

    def document(self, uri: str) -> OpenDocument | None:
        return self.desk.documents.get(uri)

    def start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.background.add(task)
        task.add_done_callback(self.background.discard)

    async def ask(self, uri: str, question: Callable[[OpenDocument, ProjectView], T]) -> T | None:
        """Return the answer about a document's newest text, None without a project; a MergeplanError is its error."""

        def about(document: OpenDocument) -> T | None:
            view = document.view
            return question(document, view) if view is not None else None

        return await self.ask_file(uri, about)

    async def ask_file(self, uri: str, question: Callable[[OpenDocument], T]) -> T | None:
        """Return the answer like `ask`, also while the project is not open."""
        document = self.document(uri)
        if document is None:
            return None
        if document.judged != document.number:
            await self.desk.judge(document)
        try:
            return await self.desk.read(lambda: question(document))
        except MergeplanError as error:
            raise JsonRpcException(f"{error.message} {error.hint}".strip(), REFUSED) from None

    async def judge(self, document: OpenDocument, *, saved: bool = False) -> None:
        if not await self.desk.judge(document, saved=saved):
            return
        lines = document.lines
        found_here = [to.make_diagnostic(lines, diagnostic) for diagnostic in document.diagnostics]
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(document.uri, found_here))
        number = document.number
        await asyncio.sleep(DELAY)
        if number != document.number:
            return
        if saved:
            document.planned = -1
        effects = await self.desk.plan(document)
        if document.planned == document.number:
            rows = [{"model": e.model, "line": e.line - 1, "text": e.text, "title": e.title} for e in effects]
            self.protocol.notify("mergeplan/effects", {"uri": document.uri, "effects": rows})
            workspace = self.client_capabilities.workspace
            if workspace and workspace.code_lens and workspace.code_lens.refresh_support:
                self.workspace_code_lens_refresh(None)
