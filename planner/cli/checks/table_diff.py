"""table_diff: two tables, or models in two environments, compared column by column and row by row."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from mergeplan.planner.checks.diff.diff_query import DECIMALS
from mergeplan.planner.cli.click_options import options_from
from mergeplan.planner.cli.json_lines import JsonLines, print_line
from mergeplan.planner.cli.output import make_emitter, output_of, output_option
from mergeplan.planner.cli.terminal import Terminal
from mergeplan.planner.cli.texts.table_diff_text import show_diff
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.contract.from_tables import table_difference
from mergeplan.planner.contract.lines import TableDiffLine
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.errors import RequestError
from mergeplan.planner.session.options import TableDiffOptions
from mergeplan.planner.session.use_cases.table_diff import FORM, table_diffs

DIFFERS = 5  # the exit code when something differs


@click.command()
@click.argument("sides", metavar="A:B")
@click.argument("model", required=False)
@click.option("--on", multiple=True, metavar="COLUMN", help="Join key column (default: the model's grain).")
@click.option("--where", default="", metavar="SQL", help="Only rows for which this holds.")
@click.option("--skip-columns", "skip", multiple=True, metavar="COLUMN", help="A column not to compare.")
@click.option(
    "--decimals", type=click.IntRange(0, 15), default=DECIMALS, help="The decimal places of compared numbers."
)
@click.option(
    "--rename",
    multiple=True,
    metavar="OLD=NEW",
    callback=lambda _context, _option, value: _parse_renames(value),
    help="The column OLD of A is the column NEW of B.",
)
@click.option("--schema-diff-ignore-case", is_flag=True, help="Column names in any case; with Spark it is always so.")
@click.option("-s", "--show-sample", is_flag=True, help="Show rows that differ.")
@click.option("--limit", type=click.IntRange(min=1), default=20, help="The number of rows of each sort.")
@click.option("--masked", is_flag=True, help="Mask the values.")
@click.option(
    "-m", "--select-model", "select", multiple=True, metavar="SELECTOR", help="Models to compare: names, globs, tag:x."
)
@output_option
@workspace
def table_diff(
    sides: str, model: str | None, root: Path, gateway: str | None, output: str, **option_values: Any
) -> int:
    """Compare the tables A and B, or MODEL in the environments A and B; without MODEL all that differ there.

    \b
    mergeplan table_diff prod:dev shop.orders
    mergeplan table_diff prod:dev --show-sample
    mergeplan table_diff shop.orders:old.orders \\
        --on id --where "day >= '2026-01-01'"
    """
    first, colon, second = sides.partition(":")
    if not (colon and first and second):
        raise RequestError(f"`{sides}` does not name two tables or environments.", hint=FORM)
    samples = option_values["limit"] if option_values["show_sample"] else 0
    options = options_from(TableDiffOptions, {**option_values, "samples": samples})
    differences = []
    out = output_of(output)
    with open_workspace(root, gateway, on_event=make_emitter(out), only_looks=True) as work:
        for diff in table_diffs(work, first, second, model, options):
            differences.append(diff)
            if isinstance(out, Terminal):
                show_diff(out.console, diff)
            else:
                print_line(TableDiffLine(**dict(table_difference(diff))))
    is_equal = all(diff.same for diff in differences)
    if isinstance(out, JsonLines):
        shown = tuple(table_difference(diff) for diff in differences)
        out.result(ResultLine(ok=is_equal, same=is_equal, table_diffs=shown))
    elif not differences:
        out.say(f"`{first}` and `{second}` show the same tables.")
    return 0 if is_equal else DIFFERS


def _parse_renames(texts: Iterable[str]) -> dict[str, str]:
    """Return OLD=NEW as old -> new; raise RequestError if a text renames nothing."""
    renames = {}
    for text in texts:
        old, _, new = (part.strip() for part in text.partition("="))
        if not (old and new):
            raise RequestError(f"`{text}` renames nothing.", hint="Write `--rename old=new`.")
        renames[old] = new
    return renames
