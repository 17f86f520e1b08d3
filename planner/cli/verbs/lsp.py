"""lsp: the language server for editors, on standard input and output."""

import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import click

from mergeplan.planner.cli.workspace import settings
from mergeplan.planner.errors import RequestError
from mergeplan.planner.isolation.mode import NONE, VARIABLE
from mergeplan.planner.session.settings import OPENLINEAGE_KEY, STATE_URL


@click.command()
@click.option("--gateway", help="The gateway to use instead of the project's default.")
def lsp(gateway: str | None) -> int:
    """Serve an editor, by the Language Server Protocol: errors, completion and the plan of an edit while you type.

    \b
    mergeplan lsp
    """
    if find_spec("pygls") is None:
        raise RequestError("`mergeplan lsp` needs the `pygls` package.", hint="Run `pip install 'mergeplan[lsp]'`.")
    for variable in (STATE_URL, OPENLINEAGE_KEY):
        if os.environ.get(variable) == "-":
            raise RequestError(f"{variable} is `-`: standard input is the editor's.", hint="Give the value itself.")
    options = settings(Path(), gateway)
    if os.environ.get(VARIABLE) != NONE:  # code that a folder brings is isolated, unless the operator says otherwise
        options = replace(options, isolation=replace(options.isolation, required=True))
    from mergeplan.planner.lsp.server.stdio import serve_stdio

    serve_stdio(options)
    return 0
