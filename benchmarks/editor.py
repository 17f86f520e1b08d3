"""The editor's pace over the protocol: keystrokes to diagnostics, the first answer, the lens, memory.

make bench-editor                        1,000 and 5,000 models
python -m benchmarks.editor 200 1000     other numbers of models

Prod is in the state alone. A keystroke batch is a new text of the whole document, and ends when its diagnostics come;
the lens of the same text is waited for after it. Each is shown beside what `mergeplan plan prod` takes for that text.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

from benchmarks.projects import write_project

SIZES, KEYSTROKES = (1000, 5000), 40
LIMITS = {"keystroke": 0.100, "first answer": 1.5, "memory": 400.0}


class Client:
    """A client that waits for the diagnostics of one document."""

    def __init__(self, root: Path) -> None:
        self.root, self.client = root, LanguageClient("benchmark", "1")
        self.diagnostics: asyncio.Queue[int] = asyncio.Queue()
        self.version = 1

        @self.client.feature("mergeplan/effects")
        def effects(_: object) -> None:
            """The lens is asked for."""

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(params: lsp.PublishDiagnosticsParams) -> None:
            self.diagnostics.put_nowait(len(params.diagnostics))

    async def start(self, environ: dict[str, str]) -> None:
        """Start a server, and shake hands."""
        await self.client.start_io(sys.executable, "-m", "mergeplan", "lsp", env=environ)
        options = {"trusted": True}
        await self.client.initialize_async(
            lsp.InitializeParams(lsp.ClientCapabilities(), initialization_options=options)
        )
        self.client.initialized(lsp.InitializedParams())

    async def open(self, path: str, text: str) -> None:
        """Open a document, and wait for its diagnostics."""
        item = lsp.TextDocumentItem((self.root / path).as_uri(), "sql", 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        await self.diagnostics.get()

    async def type(self, path: str, text: str) -> None:
        """Replace a document's text, and wait for its diagnostics."""
        self.version += 1
        document = lsp.VersionedTextDocumentIdentifier(self.version, (self.root / path).as_uri())
        change = lsp.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [change]))
        await self.diagnostics.get()

    async def lens(self, path: str) -> str:
        """The effect that the lens of a document shows."""
        document = lsp.TextDocumentIdentifier((self.root / path).as_uri())
        lenses = await self.client.text_document_code_lens_async(lsp.CodeLensParams(document))
        return lenses[0].command.title if lenses and lenses[0].command else ""

    @property
    def process(self) -> Path:
        """What the system says of the server's process."""
        server = self.client._server  # pygls has no other way to its process
        assert server is not None
        return Path(f"/proc/{server.pid}")

    @property
    def memory(self) -> float:
        """MiB that the server has in use."""
        lines = (self.process / "status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    @property
    def cpu(self) -> float:
        """Seconds of the processor that the server has used."""
        fields = (self.process / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Pace:
    """The times of one project, in seconds."""

    size: int
    first: float = 0.0
    first_cpu: float = 0.0
    first_lens: float = 0.0
    typed: list[float] = field(default_factory=list)
    typed_cpu: list[float] = field(default_factory=list)
    lenses: list[float] = field(default_factory=list)
    memory: float = 0.0
    plan: float = 0.0


def quantile(seconds: Sequence[float], share: float) -> float:
    """The time below which this share of the times lies."""
    ordered = sorted(seconds)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


async def measure(root: Path, size: int, environ: dict[str, str]) -> None:
    """One server over one project, in which a staging model is edited."""
    client, pace, path = Client(root), Pace(size), "models/staging/m7.sql"
    text = (root / path).read_text()
    began = time.perf_counter()
    await client.start(environ)
    await client.open(path, text)
    pace.first, pace.first_cpu = time.perf_counter() - began, client.cpu
    began = time.perf_counter()
    await client.lens(path)
    pace.first_lens = time.perf_counter() - began
    for number in range(KEYSTROKES):
        await keystroke(client, pace, path, text, number)
    pace.memory, lens = client.memory, await client.lens(path)
    began = time.perf_counter()
    plan = [sys.executable, "-m", "mergeplan", "plan", "-p", str(root), "--skip-tests", "--output", "json"]
    subprocess.run(plan, env=environ, capture_output=True, check=False)
    pace.plan = time.perf_counter() - began
    report(pace)
    print(f"         {lens}", flush=True)
    with suppress(Exception):
        await asyncio.wait_for(client.client.shutdown_async(None), 5)
    client.client.exit(None)
    await client.client.stop()


async def keystroke(client: Client, pace: Pace, path: str, text: str, number: int) -> None:
    """Type one text; each fourth is broken, and has no lens of its own."""
    edited = text.replace("\n  updated_at,", f"\n  updated_at, id + {number} AS added,", 1)
    broken = edited.replace("FROM cleaned", "FROM cleaned WHERE (") if number % 4 == 3 else edited
    began, used = time.perf_counter(), client.cpu
    await client.type(path, broken)
    pace.typed.append(time.perf_counter() - began)
    pace.typed_cpu.append(client.cpu - used)
    if broken is edited:
        began = time.perf_counter()
        await client.lens(path)
        pace.lenses.append(time.perf_counter() - began)


def report(pace: Pace) -> None:
    """Print one project's figures, each beside its limit or the command's time."""
    middle, slow = quantile(pace.typed, 0.5), quantile(pace.typed, 0.95)
    lens, cpu = quantile(pace.lenses, 0.95), quantile(pace.typed_cpu, 0.95)
    plan = f"plan takes {pace.plan / middle:.0f} times as long"
    print(f"{pace.size:>6} models")
    print(f"         keystroke to diagnostics   median {middle * 1000:.0f} ms, p95 {slow * 1000:.0f} ms: "
          f"{slow / LIMITS['keystroke']:.1f} of the limit; {plan}")  # fmt: skip
    print(f"         processor for it           p95 {cpu * 1000:.0f} ms: {cpu / LIMITS['keystroke']:.1f} of the limit")
    print(f"         then to the lens           p95 {lens * 1000:.0f} ms; the first {pace.first_lens:.1f} s")
    print(
        f"         first answer, started anew {pace.first:.1f} s: "
        f"{pace.first / LIMITS['first answer']:.1f} of the limit; processor {pace.first_cpu:.1f} s"
    )
    print(
        f"         memory                     {pace.memory:.0f} MiB: {pace.memory / LIMITS['memory']:.1f} of the limit"
    )


def main(sizes: Sequence[int]) -> None:
    """Measure each size in a folder of its own, with a warm cache."""
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve() / "project"
            root.mkdir()
            write_project(root, size)
            environ = {**os.environ, "MERGEPLAN_CACHE": str(root.parent / "cache")}
            subprocess.run([sys.executable, "-m", "benchmarks.promoted", str(root)], env=environ, check=True)
            asyncio.run(measure(root, size, environ))


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or SIZES)
