"""schedule: an environment's models as a document for schedulers."""

from pathlib import Path

import click

from mergeplan.planner.cli.workspace import settings, workspace
from mergeplan.planner.replace_file import replace_file
from mergeplan.planner.session.scheduling.schedule import make_schedule
from mergeplan.planner.session.state_access import open_state
from mergeplan.planner.snapshot.environment import PROD, parse_environment_name


@click.command()
@click.argument("environment", default=PROD)
@click.option("--to", "path", metavar="FILE", type=click.Path(path_type=Path), help="Write it to this file.")
@workspace
def schedule(environment: str, path: Path | None, root: Path, gateway: str | None) -> int:
    """Print the models of ENVIRONMENT (prod by default) for schedulers: parents, cron, columns, tables, versions.

    Only the state is read: no model's file is opened, and no Spark started.

    \b
    mergeplan schedule
    mergeplan schedule --to /srv/airflow/schedules/shop.json
    """
    name = parse_environment_name(environment)
    with open_state(settings(root, gateway)) as store:
        text = f"{make_schedule(store, name).model_dump_json()}\n"
    if path is None:
        click.echo(text, nl=False)
    else:
        replace_file(path, text)
    return 0
