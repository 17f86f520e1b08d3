"""The commands of lenses and of the client's own messages: rendering, unit tests, formatting."""

import asyncio
import os
import subprocess
import sys
from collections.abc import MutableSet
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.uris import to_fs_path

from mergeplan.planner.isolation.mode import REQUIRED, VARIABLE
from mergeplan.planner.lsp.project_files import is_project
from mergeplan.planner.lsp.project_view import ProjectView
from mergeplan.planner.lsp.server import conversions as to
from mergeplan.planner.lsp.server.desk import OpenDocument
from mergeplan.planner.lsp.server.server import REFUSED, Server
from mergeplan.planner.lsp.texts import Span

SECONDS = 600.0
Children = MutableSet["subprocess.Popen[str]"]


def add_commands(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    async def formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        def question(document: OpenDocument, _: ProjectView) -> list[lsp.TextEdit]:
            if not document.path.endswith(".sql"):
                return []
            text = document.editor.format(document.path, document.text)
            whole = to.make_range(document.lines, Span(0, len(document.text)))
            return [lsp.TextEdit(whole, text)] if text != document.text else []

        return await server.ask(params.text_document.uri, question)

    @server.feature("mergeplan/render")
    async def render(params: Any) -> dict[str, str] | None:
        return await render_model(server, params.uri, params.model)

    @server.feature("mergeplan/tests")
    async def list_tests(params: Any) -> list[dict[str, Any]]:
        return await list_unit_tests(server, params.root)

    @server.command("mergeplan.render")
    async def render_command(uri: str, model: str) -> dict[str, str] | None:
        return await render_model(server, uri, model)

    @server.command("mergeplan.runTest")
    async def run_test(uri: str, name: str) -> dict[str, Any] | None:
        document = server.document(uri)
        if document is None or not document.editor.trusted:
            raise JsonRpcException("Trust the folder to run its tests.", REFUSED)
        result = await asyncio.to_thread(run_unit_test, document.editor.root, document.path, name, server.desk.children)
        kind = lsp.MessageType.Info if result["ok"] else lsp.MessageType.Error
        server.window_show_message(lsp.ShowMessageParams(kind, str(result["message"])))
        return result


async def render_model(server: Server, uri: str, model: str) -> dict[str, str] | None:
    return await server.ask(uri, lambda document, _: {"model": model, "sql": document.editor.render(model)})


async def list_unit_tests(server: Server, uri: str) -> list[dict[str, Any]]:
    """Return the unit tests of a project's folder, by files and open texts; raise JsonRpcException if it is none."""
    folder = Path(to_fs_path(uri) or "").resolve()
    if not is_project(folder):
        raise JsonRpcException(f"`{folder}` is no project.", REFUSED)
    await server.desk.wait_for_rest()  # a folder of many projects asks for the tests of each
    tests = await server.desk.read(server.desk.editor(folder).unit_tests)
    return [{"name": t.name, "path": t.path, "line": max(t.line - 1, 0), "model": t.model} for t in tests]


def run_unit_test(root: Path, path: str, name: str, children: Children) -> dict[str, Any]:
    """Return whether the test of a file on the disk passes, and its output; `children` has its process meanwhile."""
    # `-P`: no module of the editor's working folder replaces one of ours
    command = [sys.executable, "-P", "-m", "mergeplan", "test", f"{path}::{name}", "-p", str(root)]
    environ = {VARIABLE: REQUIRED, **os.environ}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, text=True, env=environ, **pipes) as child:  # type: ignore[call-overload]
        children.add(child)
        try:
            output, _ = child.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            child.terminate()
            return {"ok": False, "message": f"`{name}` did not end within {SECONDS:.0f} seconds.", "output": ""}
        finally:
            children.discard(child)
    summary = "passed" if child.returncode == 0 else "failed"
    return {"ok": child.returncode == 0, "message": f"`{name}` {summary}.", "output": output.strip()}
