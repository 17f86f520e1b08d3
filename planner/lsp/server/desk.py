"""The documents of an editor: their projects, their newest texts, and the threads that judge and plan them."""

import asyncio
import gc
import subprocess
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from pygls.uris import to_fs_path

from mergeplan.planner.lsp.diagnostics import Diagnostic
from mergeplan.planner.lsp.editor import Editor, Effect
from mergeplan.planner.lsp.project_files import is_of_project, is_project
from mergeplan.planner.lsp.project_view import ProjectView
from mergeplan.planner.lsp.texts import Lines
from mergeplan.planner.session.settings import SessionSettings

T = TypeVar("T")
PAUSE = 0.05  # seconds
STACK = 64 << 20  # bytes of a thread's stack: a parser goes deep
threading.stack_size(STACK)


@dataclass
class OpenDocument:
    uri: str
    path: str  # from its project's folder
    editor: Editor
    text: str
    mark: int = 0  # 1 where it begins with a byte order mark
    number: int = 0  # of its text, counted by us
    judged: int = -1
    diagnostics: tuple[Diagnostic, ...] = ()
    effects: tuple[Effect, ...] = ()
    planned: int = -1

    @property
    def lines(self) -> Lines:
        return Lines(self.text, self.mark)

    @property
    def view(self) -> ProjectView | None:
        return self.editor.view


@dataclass
class Desk:
    """All open documents, with their projects."""

    settings: SessionSettings
    trusted: bool = False
    documents: dict[str, OpenDocument] = field(default_factory=dict)
    editors: dict[Path, Editor] = field(default_factory=dict)
    reading: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "read"))
    planning: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "plan"))
    children: set[subprocess.Popen[str]] = field(default_factory=set)  # unit tests that run
    waiting: int = 0  # pieces of work that read

    def open(self, uri: str, text: str) -> OpenDocument | None:
        """Add a document that a client opened; return None for one of no project."""
        file = Path(to_fs_path(uri) or "").resolve()
        root = next(filter(is_project, file.parents), None)
        if root is None:
            return None
        editor = self.editor(root)
        path = file.relative_to(editor.root).as_posix()
        if not is_of_project(path, editor.layout):
            return None
        document = OpenDocument(uri, path, editor, _normalize_text(text), _mark_length(text))
        self.documents[uri] = document
        return document

    def editor(self, root: Path) -> Editor:
        """Return the editor of a project's folder, which is opened once."""
        if root not in self.editors:
            self.editors[root] = Editor(replace(self.settings, root=root), self.trusted)
        return self.editors[root]

    def change(self, uri: str, text: str) -> OpenDocument | None:
        document = self.documents.get(uri)
        if document is not None:
            document.text, document.mark, document.number = (
                _normalize_text(text),
                _mark_length(text),
                document.number + 1,
            )
        return document

    def editors_of(self, files: Iterable[Path]) -> list[Editor]:
        """Return the projects whose folders contain any of these files."""
        folders = {folder for file in files for folder in file.parents}
        return [editor for root, editor in self.editors.items() if root in folders]

    async def read(self, work: Callable[[], T]) -> T:
        """Run work that reads or changes projects, one at a time."""
        self.waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.reading, work)
        finally:
            self.waiting -= 1

    async def wait_for_rest(self) -> None:
        while self.waiting:
            await asyncio.sleep(PAUSE)

    async def judge(self, document: OpenDocument, *, saved: bool = False) -> bool:
        """Judge the newest text of a document; return False if a newer one came meanwhile, which is judged then."""
        number = document.number

        def work() -> tuple[Diagnostic, ...] | None:
            if number != document.number:
                return None  # while it waited
            return document.editor.judge(document.path, document.text, saved=saved)

        loads = document.editor.live.loads
        diagnostics = await self.read(work)
        if document.editor.live.loads != loads:
            self.reading.submit(settle)
        if diagnostics is None or number != document.number:
            return False
        document.diagnostics, document.judged = diagnostics, number
        return True

    async def plan(self, document: OpenDocument) -> tuple[Effect, ...]:
        """Return the effects of a document's edits; those of an older text while a newer one is being judged."""
        if document.judged != document.number and not await self.judge(document):
            return document.effects
        number, view = document.number, document.view
        if document.editor.live.errors.get(document.path):
            return tuple(replace(effect, text=f"Before the error: {effect.text}") for effect in document.effects)
        if document.planned == number or view is None:
            return document.effects

        def is_newest() -> bool:
            return number == document.number

        def work() -> tuple[Effect, ...] | None:
            return document.editor.effects(document.path, view, is_newest) if is_newest() else None

        state = document.editor.state
        effects = await asyncio.get_running_loop().run_in_executor(self.planning, work)
        if document.editor.state is not state:
            gc.freeze()  # as `settle`, without its pause
        if effects is not None and is_newest():
            document.effects, document.planned = effects, number
        return document.effects

    def close(self) -> None:
        """End the threads and the running children, and close the caches."""
        for child in tuple(self.children):
            child.terminate()
        self.reading.shutdown(wait=False, cancel_futures=True)
        self.planning.shutdown(wait=False, cancel_futures=True)
        for editor in self.editors.values():
            editor.close()


def _normalize_text(text: str) -> str:
    """Return a client's text as files are read: with newlines as line ends, and without a byte order mark."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _mark_length(text: str) -> int:
    return int(text.startswith("\ufeff"))


def settle() -> None:
    """Free what an earlier project left, and exclude everything that exists from later collections."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
