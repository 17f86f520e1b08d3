"""render: a model's query, and those of its audits, as Spark would run them. It starts no Spark."""

from pathlib import Path
from typing import Any

import click

from mergeplan.planner.cli.click_options import options_from
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.session.rendering import (
    RenderFilling,
    check_dialect,
    find_rendering,
    render_audits,
    render_query,
    write_sql,
)


@click.command()
@click.argument("model")
@click.option("--start", metavar="DATE", help="As if computing from this day.")
@click.option("--end", metavar="DATE", help="As if computing up to and including this day.")
@click.option("--execution-time", metavar="DATE", help="As if it were this moment, not now.")
@click.option(
    "--expand", multiple=True, metavar="SELECTION", help="Put the queries of these models in place of their names."
)
@click.option("--dialect", default="spark", help="Print it in another SQL dialect; it runs as Spark SQL.")
@click.option("--no-format", is_flag=True, help="Print each query in one line.")
@click.option("--audits", is_flag=True, help="Print the queries of its audits.")
@workspace
def render(model: str, audits: bool, root: Path, gateway: str | None, **option_values: Any) -> int:
    """Print MODEL's query as Spark would run it, dates and embedded models filled in.

    \b
    mergeplan render shop.orders --start 2026-01-01 --end 2026-01-07
    mergeplan render shop.orders --expand '+shop.orders' --dialect duckdb
    mergeplan render shop.orders --audits
    """
    into = check_dialect(option_values["dialect"])
    with open_workspace(root, gateway, execution_time=option_values["execution_time"]) as work:
        rendering = find_rendering(work, model, options_from(RenderFilling, option_values))
        if rendering.model.python and not audits:
            click.echo(rendering.model.source, nl=False)  # it has no query: its code is what there is to show
            return 0
        queries = list(render_audits(work, rendering)) if audits else [render_query(work, rendering)]
    for sql in queries:
        text = write_sql(sql, into, in_one_line=option_values["no_format"])
        click.echo(f"{text};" if audits else text)
    return 0
