"""render: a model's query, and those of its audits, as Spark would run them. It starts no Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import sqlglot

from mergeplan.planner.checks.audits import AuditContext, audit_query
from mergeplan.planner.cli.click_options import options_from
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.errors import Place, ProjectError, RequestError
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.selection import select
from mergeplan.planner.parsing.definitions.formatting import pretty
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.render import render as rendered
from mergeplan.planner.parsing.sql.misreading import differ
from mergeplan.planner.parsing.sql.names import without_default
from mergeplan.planner.parsing.sql.tokens import SourceText, did_you_mean, parse_dialect, tokenize
from mergeplan.planner.semantics.spark.spark_sql import SPARK
from mergeplan.planner.session.moments import moment
from mergeplan.planner.session.use_cases.git_changes import git_change_finder
from mergeplan.planner.session.workspace import Workspace

_BLANKS = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`[^`]*`|\s+", re.DOTALL)


@dataclass(frozen=True)
class RenderFilling:
    """What is filled in: the time, and the models whose queries stand in place of their names."""

    start: str | None
    end: str | None
    expand: tuple[str, ...]


@dataclass(frozen=True)
class Rendering:
    """A model, its time, and the models whose queries stand in place of their names."""

    model: Model
    interval: Interval | None
    expanded: dict[str, Model]


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
@click.option("--audits", is_flag=True, help="Print what its audits ask.")
@workspace
def render(model: str, audits: bool, root: Path, gateway: str | None, **option_values: Any) -> int:
    """Print MODEL's query as Spark would run it, dates and embedded models filled in.

    \b
    mergeplan render shop.orders --start 2026-01-01 --end 2026-01-07
    mergeplan render shop.orders --expand '+shop.orders' --dialect duckdb
    mergeplan render shop.orders --audits
    """
    into = _dialect(option_values["dialect"])
    with open_workspace(root, gateway, execution_time=option_values["execution_time"]) as work:
        wanted = _rendering(work, model, options_from(RenderFilling, option_values))
        if wanted.model.python and not audits:
            click.echo(wanted.model.source, nl=False)  # it has no query: its code is what there is to show
            return 0
        queries = list(_audits(work, wanted) if audits else _query(work, wanted))
    for sql in queries:
        text = _write_sql(sql, into, in_one_line=option_values["no_format"])
        click.echo(f"{text};" if audits else text)
    return 0


def _rendering(work: Workspace, name: str, filling: RenderFilling) -> Rendering:
    models = work.project.models
    called = without_default(name.lower(), work.project.catalogs.default)
    model = models.get(called)
    if model is None:
        work.project.refused.check_model(called)
        raise RequestError(f"There is no model `{name}`.", hint=did_you_mean(name, models))
    since, until = moment(filling.start, work.now), moment(filling.end, work.now, end=True) or work.now
    if since and since >= until:
        raise RequestError("The end does not come after the start.")
    chosen = select(graph_of(models), filling.expand, git_change_finder(work.project)) - {model.name}
    expanded = {model_name: models[model_name] for model_name in chosen if models[model_name].sql}
    return Rendering(model, Interval(since, until) if since else None, {**work.project.models_to_inline, **expanded})


def _query(work: Workspace, rendering: Rendering) -> Iterator[str]:
    if not rendering.model.sql:
        raise RequestError(f"`{rendering.model.name}` has no query: its kind is {rendering.model.kind}.")
    yield rendered(rendering.model, {}, rendering.expanded, rendering.interval, work.now)


def _audits(work: Workspace, rendering: Rendering) -> Iterator[str]:
    model = rendering.model
    options = AuditContext(work.project.audits, embedded=rendering.expanded, execution=work.now)
    if not model.audits:
        raise RequestError(f"`{model.name}` has no audits.")
    for call in model.audits:
        yield audit_query(model, call, model.name, rendering.interval, options)


def _write_sql(sql: str, dialect: str, *, in_one_line: bool) -> str:
    if dialect in SPARK:
        return _join_lines(sql) if in_one_line else _format_query(sql, dialect)
    return sqlglot.parse_one(sql, dialect="spark").sql(dialect=dialect, pretty=not in_one_line)


def _join_lines(sql: str) -> str:
    """The text as it runs; a line's end inside a quoted text stays."""
    return _BLANKS.sub(lambda match: " " if match[0].isspace() else match[0], sql).strip()


def _format_query(sql: str, dialect: str) -> str:
    """The query laid out, or as it stands where its words would be others."""
    text = pretty(spark_tree(sql), dialect)
    before, after = (tokenize(SourceText("", version, dialect)) for version in (sql, text))
    return sql.strip() if differ(before, after) else text


def _dialect(name: str) -> str:
    try:
        return parse_dialect(name, Place(""))
    except ProjectError as error:
        raise RequestError(error.message, hint=error.hint) from None
