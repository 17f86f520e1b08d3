"""fetchdf and warm: a query's rows on the terminal, and a Spark that stays up."""

import csv
import sys
from pathlib import Path

import click
from rich.cells import cell_len

from mergeplan.planner.cli.json_lines import JsonLines
from mergeplan.planner.cli.output import make_emitter
from mergeplan.planner.cli.texts.unfinished_text import print_to_stderr
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.contract.from_events import build_sample
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.engine.protocol import Connection, Rows
from mergeplan.planner.engine.spark.process.warm import serve_warm
from mergeplan.planner.errors import RequestError
from mergeplan.planner.parsing.files.configuration import CONFIGS
from mergeplan.planner.session.notebook.listing import cell_text, line_text


@click.command()
@click.argument("sql")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many rows.")
@click.option("-o", "--output", type=click.Choice(["text", "json", "csv"]), default="text", help="How to print it.")
@workspace
def fetchdf(sql: str, limit: int | None, output: str, root: Path, gateway: str | None) -> int:
    """Run a query on the project's Spark and print its rows.

    \b
    mergeplan fetchdf "select * from shop.orders"
    mergeplan fetchdf "select * from shop__dev.orders" --limit 10 --output csv
    """
    if not sql.strip():
        raise RequestError("The query is empty.")
    printer = JsonLines()
    with open_workspace(
        root, gateway, on_event=make_emitter(printer) if output == "json" else print_to_stderr, only_looks=True
    ) as work:
        work.look()
        rows = work.engine.fetch(sql, limit)
    if output == "json":
        answer = build_sample(rows)
        printer.result(ResultLine(ok=True, columns=answer.columns, rows=answer.rows))
    elif output == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(rows.columns)
        writer.writerows(["" if value is None else cell_text(value) for value in row] for row in rows.rows)
    else:
        click.echo(table_text(rows))
    return 0


@click.command()
@workspace
def warm(root: Path, gateway: str | None) -> int:
    """Keep a Spark running on the embedded catalog until it is stopped; the other verbs use it and start faster.

    In a folder that is no project it is the catalog in MERGEPLAN_HOME, with Spark's own settings.

    \b
    mergeplan warm &
    """
    with open_workspace(root, gateway) as work:
        is_project = any((work.settings.root / name).is_file() for name in CONFIGS)
        serve_warm(work.settings.folder, work.connection if is_project else Connection(), say=click.echo)
    return 0


def table_text(rows: Rows) -> str:
    if not rows.rows:
        return f"No rows; columns: {', '.join(rows.columns)}" if rows.columns else "No rows."
    cells = [
        ["", *rows.columns],
        *([str(n), *(line_text(cell_text(v)) for v in row)] for n, row in enumerate(rows.rows)),
    ]
    widths = [max(cell_len(row[n]) for row in cells) for n in range(len(cells[0]))]
    return "\n".join(
        "  ".join(" " * (width - cell_len(text)) + text for text, width in zip(row, widths, strict=True))
        for row in cells
    )
