"""fetchdf and warm: a query's rows on the terminal, and a Spark that stays up."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import click

from planner.cli.json_lines import line
from planner.cli.workspace import opened, workspace
from planner.engine import Connection, Rows
from planner.errors import RequestError


@click.command()
@click.argument("sql")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many rows.")
@click.option("-o", "--output", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True)
@workspace
def fetchdf(sql: str, limit: int | None, output: str, root: Path, gateway: str | None) -> int:
    """Run a query on the project's Spark and print its rows.

    \b
    mergeplan fetchdf "select * from shop.orders"
    mergeplan fetchdf "select * from shop__dev.orders" --limit 10 --output csv
    """
    if not sql.strip():
        raise RequestError("The query is empty.")
    with opened(root, gateway) as work:
        rows = work.engine.fetch(sql.strip().rstrip(";"), limit)
    if output == "json":
        line({"event": "result", "ok": True, "columns": list(rows.columns), "rows": [list(row) for row in rows.rows]})
    elif output == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(rows.columns)
        writer.writerows(rows.rows)
    else:
        click.echo(table_text(rows))
    return 0


@click.command()
@workspace
def warm(root: Path, gateway: str | None) -> int:
    """Keep a Spark running on the embedded catalog until it is told to stop; the other verbs use it and start faster.

    In a folder that is no project it is the catalog in MERGEPLAN_HOME, with Spark's own settings.

    \b
    mergeplan warm &
    """
    from planner.warm import serve_warm

    with opened(root, gateway) as work:
        is_project = any((work.root / name).is_file() for name in ("config.yaml", "config.yml"))
        serve_warm(work.home, work.connection if is_project else Connection(), say=click.echo)
    return 0


def table_text(rows: Rows) -> str:
    """Rows as an aligned table with a row number, numbers and dates to the right as everything else."""
    cells = [["", *rows.columns], *([str(n), *map(_cell, row)] for n, row in enumerate(rows.rows))]
    if not rows.rows:
        return f"Empty: no rows.\nColumns: {', '.join(rows.columns)}"
    widths = [max(len(row[n]) for row in cells) for n in range(len(cells[0]))]
    return "\n".join("  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in cells)


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value, default=str)
    return str(value)
