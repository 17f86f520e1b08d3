"""table_diff: two tables, or models in two environments, compared column by column and row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from planner.checks.diff_query import DECIMALS, DiffOptions
from planner.checks.table_diff import TableDiff, changed_models, compare_tables
from planner.cli.gitchanges import changed_since
from planner.cli.json_lines import JsonLines, line
from planner.cli.plan import output_option
from planner.cli.table_diff_text import diff_json, show_diff
from planner.cli.terminal import Terminal
from planner.cli.workspace import Workspace, opened, workspace
from planner.errors import MergeplanError, Place, RequestError
from planner.model.graph import graph_of
from planner.model.model import Kind
from planner.model.selection import select
from planner.parsing.macros.expand import spark_tree
from planner.parsing.sql.names import model_name
from planner.parsing.sql.tokens import did_you_mean
from planner.snapshot.environment import Environment, checked_name

DIFFERS = 5  # the exit code when something differs
FORM = "Write `prod:dev`, or `schema.table:schema.table`."


@click.command()
@click.argument("sides", metavar="A:B")
@click.argument("model", required=False)
@click.option("--on", multiple=True, metavar="COLUMN", help="A column of the key; the model's grain otherwise.")
@click.option("--where", default="", metavar="SQL", help="Only rows for which this holds.")
@click.option("--skip-columns", multiple=True, metavar="COLUMN", help="A column not to compare.")
@click.option("--decimals", type=click.IntRange(0, 15), default=DECIMALS, help="Of floating point numbers that count.")
@click.option("--rename", multiple=True, metavar="OLD=NEW", help="The column OLD of A is the column NEW of B.")
@click.option("--schema-diff-ignore-case", is_flag=True, help="Column names in any case; with Spark it is always so.")
@click.option("-s", "--show-sample", is_flag=True, help="Show rows that differ.")
@click.option("--limit", type=click.IntRange(min=1), default=20, help="How many rows of each sort.")
@click.option("-m", "--select-model", multiple=True, metavar="SELECTOR", help="Models to compare: names, globs, tag:x.")
@output_option
@workspace
def table_diff(sides: str, model: str | None, root: Path, gateway: str | None, output: str, **flags: Any) -> int:
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
    options = _options(flags)
    found = []
    out = JsonLines() if output == "json" else Terminal()
    with opened(root, gateway, hear=out.event, only_looks=True) as work:
        tables = "." in first and "." in second
        if tables and (model or flags["select_model"]):
            raise RequestError("Two tables are no environments in which a model could be compared.", hint=FORM)
        work.look()
        for diff in (
            _of_tables(work, (first, second), options)
            if tables
            else _of_models(work, (first, second), model, flags["select_model"], options)
        ):
            found.append(diff)
            if isinstance(out, Terminal):
                show_diff(out.console, diff)
            else:
                line({"event": "table_diff", **diff_json(diff)})
    same = all(diff.same for diff in found)
    if isinstance(out, JsonLines):
        out.result(same, None, {"same": same, "table_diffs": [diff_json(diff) for diff in found]})
    elif not found:
        out.say(f"`{first}` and `{second}` show the same tables.")
    return 0 if same else DIFFERS


def _options(flags: dict[str, Any]) -> DiffOptions:
    """The flags as options; RequestError for a condition or a renaming that cannot be read."""
    renamed = [tuple(part.strip().lower() for part in text.partition("=")[::2]) for text in flags["rename"]]
    for text, pair in zip(flags["rename"], renamed, strict=True):
        if not all(pair):
            raise RequestError(f"`{text}` renames nothing.", hint="Write `--rename old=new`.")
    if flags["where"]:
        try:
            spark_tree(flags["where"])
        except MergeplanError as error:
            raise RequestError(f"`--where`: {error.message}") from None
    return DiffOptions(
        on=tuple(column.lower() for column in flags["on"]),
        where=flags["where"],
        skip=frozenset(column.lower() for column in flags["skip_columns"]),
        decimals=flags["decimals"],
        renamed=tuple((old, new) for old, new in renamed),
        samples=flags["limit"] if flags["show_sample"] else 0,
    )


def _of_tables(work: Workspace, names: tuple[str, str], options: DiffOptions) -> Iterator[TableDiff]:
    tables = (model_name(names[0], Place("A:B")), model_name(names[1], Place("A:B")))
    known = [work.project.models[name].grain for name in tables if name in work.project.models]
    keyed = options if options.on or not any(known) else replace(options, on=next(filter(None, known)))
    yield compare_tables(work.engine, tables, tables, keyed)


def _of_models(
    work: Workspace, names: tuple[str, str], model: str | None, selectors: tuple[str, ...], options: DiffOptions
) -> Iterator[TableDiff]:
    first, second = (work.environment(checked_name(name)) for name in names)
    tables = (_tables(first), _tables(second))
    for name in _chosen(work, first, second, model, selectors):
        grain = second.snapshots[name].model.grain or first.snapshots[name].model.grain
        keyed = options if options.on else replace(options, on=grain)
        pair = (tables[0][name], tables[1][name])
        yield compare_tables(work.engine, (first.name, second.name), pair, keyed, name)


def _chosen(
    work: Workspace, first: Environment, second: Environment, model: str | None, selectors: tuple[str, ...]
) -> tuple[str, ...]:
    """The models to compare: the one that is named, those that are selected, or all that differ."""
    here, there = _tables(first), _tables(second)
    if model is not None:
        for environment, known in ((first, here), (second, there)):
            if model.lower() not in known:
                hint = did_you_mean(model, known, most=12)
                raise RequestError(f"`{environment.name}` has no table of `{model}`.", hint=hint)
        return (model.lower(),)
    changed = changed_models(here, there)
    if not selectors:
        return changed
    wanted = select(graph_of(work.project.models), selectors, changed_since(work.project))
    return tuple(name for name in changed if name in wanted)


def _tables(environment: Environment) -> dict[str, str]:
    """Model -> what holds its rows in the environment; embedded and external models have nothing to compare."""
    return {
        name: each.table
        for name, each in environment.snapshots.items()
        if each.kind.has_view and each.kind is not Kind.EXTERNAL
    }
