"""The tools as a server of the Model Context Protocol, on standard input and output. The one door to the `mcp` SDK."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, ParamSpec

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

from mergeplan.planner.agents.tools import Tools
from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.versions import mergeplan_version

P = ParamSpec("P")
INSTRUCTIONS = (
    "Questions about the Spark models of one mergeplan project. Nothing here writes, computes or reads rows of tables. "
    "Before you edit a model, ask `impact` with the text that you propose. Lists are paged: `total`, `limit`, `offset`."
)
READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def make_server(tools: Tools) -> MCPServer[Any]:
    """The server; calls are answered one after another."""
    server: MCPServer[Any] = MCPServer("mergeplan", instructions=INSTRUCTIONS, version=mergeplan_version())
    turn = threading.Lock()
    for tool in (
        tools.models,
        tools.model,
        tools.lineage,
        tools.environments,
        tools.history,
        tools.explain,
        tools.impact,
        tools.lint,
        tools.rollback,
    ):
        description = " ".join((tool.__doc__ or "").split())
        server.tool(tool.__name__, description=description, annotations=READ_ONLY)(_answering(tool, turn))
    return server


def serve_stdio(tools: Tools) -> None:
    """Answer on standard input and output until the client is gone."""
    make_server(tools).run("stdio")


def _answering(tool: Callable[P, dict[str, Any]], turn: threading.Lock) -> Callable[P, dict[str, Any]]:
    """The tool with our errors as sentences for the agent."""

    @functools.wraps(tool)
    def answer(*args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        try:
            with turn:
                return tool(*args, **kwargs)
        except MergeplanError as error:
            place = f"{error.place}: " if error.place else ""
            raise ToolError(f"{place}{error.message} {error.hint}".strip()) from None

    return answer
