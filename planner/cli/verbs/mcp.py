"""mcp: questions of an agent about the project, on standard input and output."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click

from mergeplan.planner.agents.tools import Tools
from mergeplan.planner.cli.workspace import settings, workspace
from mergeplan.planner.errors import RequestError
from mergeplan.planner.session.settings import refuse_spark


@click.command()
@workspace
def mcp(root: Path, gateway: str | None) -> int:
    """Answer an agent's questions about the project, by the Model Context Protocol; its tools only read.

    \b
    mergeplan mcp --project shop
    """
    if find_spec("mcp") is None:
        raise RequestError("`mergeplan mcp` needs the `mcp` package.", hint="Run `pip install 'mergeplan[mcp]'`.")
    if not root.is_dir():
        raise RequestError(f"There is no folder `{root}`.")
    tools = Tools(replace(settings(root, gateway), open_engine=refuse_spark))
    import_module("mergeplan.planner.agents.server").serve_stdio(tools)
    return 0
