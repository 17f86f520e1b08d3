"""init: a new project, by questions or by arguments."""

import re
import sys
from pathlib import Path

import click

from mergeplan.planner.errors import RequestError
from mergeplan.planner.project.scaffold import Template, Wishes, write_project

ENGINES = ("duckdb", "snowflake", "databricks", "bigquery", "motherduck", "clickhouse", "redshift", "trino",
           "azuresql", "mssql", "postgres", "gcp_postgres", "mysql", "athena", "risingwave")  # fmt: skip
TEMPLATES: tuple[Template, ...] = ("default", "empty")
SPARKS = ("", "remote", "master")
FORMS = {"remote": r"sc://\S+", "master": r"(spark|k8s|local|yarn|mesos)\S*"}
EXAMPLES = {"remote": "sc://spark.internal:15002", "master": "spark://spark.internal:7077"}
RULE = "─" * 32


@click.command()
@click.argument("target", required=False, metavar="[DIR]")
@click.option("-t", "--template", type=click.Choice(TEMPLATES), help="An example project, or empty folders.")
@click.option("--remote", metavar="sc://HOST:PORT", help="Run on this Spark Connect server.")
@click.option("--master", metavar="URL", help="Run on this cluster, by a classic session.")
@click.option("--cli-mode", type=click.Choice(["default", "flow"]), help="flow: no questions and no diffs in `plan`.")
def init(
    target: str | None, template: Template | None, remote: str | None, master: str | None, cli_mode: str | None
) -> int:
    """Start a project in DIR, or in this folder.

    \b
    mergeplan init                  asks what you want
    mergeplan init spark            the example project, here
    mergeplan init shop -t empty    empty folders in `shop`
    mergeplan init shop --remote sc://spark.internal:15002 --cli-mode flow
    """
    if target in ENGINES and not Path(target).is_dir():
        raise RequestError(f"mergeplan runs on Spark, not on `{target}`.", hint="Write `mergeplan init spark`.")
    folder = Path() if target in (None, "spark") else Path(str(target))
    answers = (target, template, remote, master, cli_mode)
    if all(answer is None for answer in answers) and sys.stdin.isatty():
        wishes = _ask_wishes()
    else:
        wishes = Wishes(template or "default", _choose_spark_line(remote, master), cli_mode == "flow")
    _next_steps(folder, wishes, write_project(folder, wishes))
    return 0


def _choose_spark_line(remote: str | None, master: str | None) -> str:
    if remote and master:
        raise RequestError("`--remote` and `--master` are two ways to reach Spark: give one of them.")
    return _spark_config_line("remote", remote) if remote else _spark_config_line("master", master) if master else ""


def _spark_config_line(key: str, address: str) -> str:
    if not re.fullmatch(FORMS[key], address) or re.search(r"[\"'\\#]|://[^/]*@", address):
        raise RequestError(f"`{address}` is no address of a Spark.", hint=f"Write it like `{EXAMPLES[key]}`.")
    return f'{key}: "{address}"'


def _ask_wishes() -> Wishes:
    click.echo(f"{RULE}\nWelcome to mergeplan!\n{RULE}\n")
    template = _ask_choice(
        "What type of project do you want to set up?",
        "DEFAULT - Create example project models and files",
        "EMPTY   - Create a configuration file and project directories only",
    )
    spark = _ask_choice(
        "Which Spark runs it?",
        "THIS MACHINE  - Nothing more to install or to set",
        "SPARK CONNECT - A server, as sc://host:15002",
        "CLUSTER       - A master, as spark://host:7077 or yarn",
    )
    key = SPARKS[spark]
    line = _spark_config_line(key, click.prompt("Address", type=str).strip()) if key else ""
    mode = _ask_choice(
        "Choose your mergeplan CLI experience:",
        "DEFAULT - See and control every detail",
        "FLOW    - Automatically run changes and show summary output",
    )
    return Wishes(TEMPLATES[template], line, mode == 1)


def _ask_choice(question: str, *answers: str) -> int:
    click.echo(f"{question}\n")
    for number, answer in enumerate(answers, start=1):
        click.echo(f"    [{number}] {answer}")
    chosen: int = click.prompt("\nEnter a number", type=click.IntRange(1, len(answers)))
    click.echo()
    return chosen - 1


def _next_steps(folder: Path, wishes: Wishes, paths: tuple[Path, ...]) -> None:
    click.echo(f"Created in {'this folder' if folder == Path() else folder}:")
    for path in paths:
        click.echo(f"  {path}")
    click.echo("\nYour mergeplan project is ready!\n")
    click.echo("Next steps:")
    if wishes.spark:
        click.echo(f"- Complete the connection of the gateway in {folder / 'config.yaml'}")
    if folder != Path():
        click.echo(f"- cd {folder}")
    click.echo("- mergeplan plan --explain   shows what a plan would do, and does nothing")
    click.echo("- mergeplan plan             shows it, asks, and builds prod")
