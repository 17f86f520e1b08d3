"""mcp: tools for an agent over the project, on standard input and output or over HTTP."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from mergeplan.planner.cli.workspace import settings, workspace
from mergeplan.planner.errors import RequestError
from mergeplan.planner.isolation.system import hide_process


@click.command()
@click.option("--http", is_flag=True, help="Serve over HTTP, at /mcp, instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The host to listen on; any other needs tokens.")
@click.option("--port", type=click.IntRange(0, 65535), default=8090, show_default=True, help="0: any that is free.")
@click.option(
    "--policy",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The policy of agents: a file outside of the project's repository.",
)
@click.option("--env", "passed", multiple=True, metavar="NAME", help="An environment variable that jobs see too.")
@workspace
def mcp(root: Path, gateway: str | None, http: bool, host: str, port: int, **option_values: Any) -> int:
    """Give an agent tools over the project, by the Model Context Protocol: it reads and plans, and never changes prod.

    \b
    mergeplan mcp --project shop
    mergeplan mcp --http --port 8090 --policy ~/agents.yaml
    """
    if find_spec("mcp") is None:
        raise RequestError("`mergeplan mcp` needs the `mcp` package.", hint="Run `pip install 'mergeplan[mcp]'`.")
    project = settings(root, gateway)
    from mergeplan.planner.agents import server
    from mergeplan.planner.api import access, serving

    tokens = access.read_tokens(os.environ) if http else {}
    hide_process()  # project code may run as the same user
    for name in access.token_variables():
        os.environ.pop(name, None)
    rules = access.Access(host=host, tokens=tokens) if http else access.Access()
    toolbox = server.open_toolbox(project, rules, dict(os.environ), **option_values)
    if not http:
        server.serve_stdio(toolbox)
        return 0
    with serving.open_socket(host, port) as listener:
        name, number = listener.getsockname()[:2]
        click.echo(f"http://{f'[{name}]' if ':' in name else name}:{number}/mcp")
        try:
            serving.serve_app(server.make_http_app(toolbox, rules), listener)
        finally:
            toolbox.close()
    return 0
