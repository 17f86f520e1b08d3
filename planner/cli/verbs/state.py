"""state export, state import: the whole state of a project as one file."""

import json
import re
from collections.abc import Iterable
from pathlib import Path

import click

from mergeplan.planner.cli.json_lines import JsonLines
from mergeplan.planner.cli.output import Output, make_emitter, output_of, output_option
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.errors import RequestError
from mergeplan.planner.replace_file import replace_file
from mergeplan.planner.snapshot.environment import parse_environment_name
from mergeplan.planner.wording import count_noun

FILE = click.Path(path_type=Path, dir_okay=False)


@click.group()
def state() -> None:
    """Export what mergeplan remembers, import it elsewhere, or replace a lost state.

    \b
    mergeplan state export -o state.json
    mergeplan state import -i state.json
    """


@state.command("export")
@click.option("-o", "--output-file", "file", type=FILE, required=True, help="The file to write.")
@click.option("--environment", "names", multiple=True, help="Only this environment; may be given several times.")
@click.option("--no-confirm", is_flag=True, help="Replace an existing file.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="For a person, or JSON lines.")
@workspace
def export(file: Path, names: tuple[str, ...], no_confirm: bool, root: Path, gateway: str | None, output: str) -> int:
    """Write the state of the project into a JSON document.

    \b
    mergeplan state export -o state.json
    mergeplan state export -o dev.json --environment dev
    """
    if file.exists() and not no_confirm and not (output == "text" and click.confirm(f"Overwrite {file}?", err=True)):
        raise RequestError(f"`{file}` exists already.", hint="Write `--no-confirm` to replace it.")
    out = output_of(output)
    with open_workspace(root, gateway, on_event=make_emitter(out), only_looks=True) as work:
        document = work.store.transfers.export(tuple(parse_environment_name(name) for name in names))
    replace_file(file, json.dumps(document, indent=1) + "\n")
    shown = document["environments"]
    _report_transfer(out, shown, f"{count_noun(len(shown), 'environment')} in {file}.", file)
    return 0


@state.command("import")
@click.option("-i", "--input-file", "file", type=FILE, required=True, help="The file to read.")
@click.option("--replace", is_flag=True, help="Delete the state of this project first.")
@click.option("--no-confirm", is_flag=True, help="Do not ask before `--replace` deletes.")
@output_option
@workspace
def import_(file: Path, replace: bool, no_confirm: bool, root: Path, gateway: str | None, output: str) -> int:
    """Read a document that `state export` wrote, in one transaction.

    \b
    mergeplan state import -i state.json
    mergeplan state import -i state.json --replace --no-confirm
    """
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"`{file}` is not JSON: {error}.") from None
    out = output_of(output)
    with open_workspace(root, gateway, on_event=make_emitter(out)) as work:
        if replace and not no_confirm and work.store.environments.history():
            question = "The state of this project will be deleted. Continue?"
            if output == "json" or not click.confirm(question, err=True):
                raise RequestError("Nothing was imported.", hint="Write `--no-confirm` to replace without a question.")
        names = work.store.transfers.load(data, replace=replace)
    _report_transfer(out, names, f"{count_noun(len(names), 'environment')} imported from {file}.")
    return 0


@state.command("takeover")
@click.argument("lost_state", metavar="ID")
@output_option
@workspace
def takeover(lost_state: str, root: Path, gateway: str | None, output: str) -> int:
    """Use the tables of a lost state, whose ID the refusal of a plan names.

    Never while that state is in use: each of the two would drop tables of the other.

    \b
    mergeplan state takeover 1f0a5c77e9b24d36
    """
    if not re.fullmatch("[0-9a-f]{16}", lost_state):
        raise RequestError(f"`{lost_state}` is no ID of a state.", hint="The refusal of a plan names it.")
    out = output_of(output)
    with open_workspace(root, gateway, on_event=make_emitter(out)) as work:
        work.store.tables.replace_owner(lost_state)
    _report_transfer(out, (), f"The tables of the state {lost_state} are those of this state now.")
    return 0


def _report_transfer(out: Output, names: Iterable[str], sentence: str, file: Path | None = None) -> None:
    if isinstance(out, JsonLines):
        out.result(ResultLine(ok=True, file=str(file) if file else None, environment_names=tuple(names)))
    else:
        click.echo(sentence)
