"""info, clean: a check whether Spark and the state answer, and removal of caches and logs."""

import shutil
from pathlib import Path

import click

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.cli.json_lines import JsonLines
from mergeplan.planner.cli.output import make_emitter, output_option
from mergeplan.planner.cli.texts.unfinished_text import print_to_stderr
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.contract.result import Info, ResultLine
from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.versions import mergeplan_version
from mergeplan.planner.wording import count_noun


@click.command()
@click.option("--skip-connection", is_flag=True, help="Do not ask Spark and the state database.")
@output_option
@workspace
def info(root: Path, gateway: str | None, output: str, skip_connection: bool) -> int:
    """Show the project, and whether its Spark and its state answer.

    \b
    mergeplan info
    mergeplan info --skip-connection
    """
    out = JsonLines() if output == "json" else None
    with open_workspace(root, gateway, on_event=make_emitter(out) if out else print_to_stderr, only_looks=True) as work:
        project = work.project
        facts: dict[str, object] = {
            "version": mergeplan_version(),
            "project": str(project.root),
            "gateway": project.gateway,
            "models": len(project.models),
            "audits": len(project.audits),
            "tests": len(project.tests),
        }
        reached = skip_connection or _check_connections(work, facts)
    if out:
        out.result(ResultLine(ok=reached, info=Info.model_validate(facts)))
    else:
        for name, value in facts.items():
            click.echo(f"{name + ':':<14} {value}")
    return 0 if reached else 1


@click.command()
@workspace
def clean(root: Path, gateway: str | None) -> int:
    """Remove caches and logs; tables, state and the project's own files stay.

    \b
    mergeplan clean
    """
    with open_workspace(root, gateway) as work:
        home, cache = work.settings.folder, Cache(work.settings.cache)
    folders = (home / "cache", home / "logs")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    files += [path for path in cache.files if path not in files]  # in a folder that may hold other things, too
    files += [path for path in (home / "spark" / "spark.log",) if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    for path in files:
        path.unlink(missing_ok=True)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    click.echo(f"{count_noun(len(files), 'file')} removed, {size} bytes.")
    return 0


def _check_connections(work: Workspace, facts: dict[str, object]) -> bool:
    """Ask Spark and the state database; return False if one of them does not answer."""
    reached = True
    try:
        facts["environments"] = len(work.store.environments.all())
        facts["state"] = "reachable"
    except MergeplanError as error:
        facts["state"], reached = f"not reachable: {error}", False
    try:
        facts["spark"] = str(work.engine.fetch("SELECT version()").rows[0][0]).split()[0]
    except MergeplanError as error:
        facts["spark"], reached = f"not reachable: {error}", False
    return reached
