"""render: a model's query, and those of its audits, as Spark would run them. It starts no Spark."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot

from mergeplan.planner.checks.audits import AuditContext, audit_query
from mergeplan.planner.errors import Place, ProjectError, RequestError
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.selection import select
from mergeplan.planner.parsing.definitions.formatting import format_tree
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.render import render_model
from mergeplan.planner.parsing.sql.misreading import tokens_differ
from mergeplan.planner.parsing.sql.names import without_default
from mergeplan.planner.parsing.sql.tokens import SourceText, did_you_mean, parse_dialect, tokenize
from mergeplan.planner.semantics.spark.spark_sql import SPARK
from mergeplan.planner.session.moments import parse_moment
from mergeplan.planner.session.use_cases.git_changes import git_change_finder
from mergeplan.planner.session.workspace import Workspace

_BLANKS = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`[^`]*`|\s+", re.DOTALL)


@dataclass(frozen=True)
class RenderFilling:
    start: str | None = None
    end: str | None = None
    expand: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rendering:
    model: Model
    interval: Interval | None
    expanded: dict[str, Model]


def find_rendering(work: Workspace, name: str, filling: RenderFilling) -> Rendering:
    """Find the model of this name and fill in the options; raise RequestError for a wrong name or time."""
    models = work.project.models
    called = without_default(name.lower(), work.project.catalogs.default)
    model = models.get(called)
    if model is None:
        work.project.refused.check_model(called)
        raise RequestError(f"There is no model `{name}`.", hint=did_you_mean(name, models))
    since, until = parse_moment(filling.start, work.now), parse_moment(filling.end, work.now, end=True) or work.now
    if since and since >= until:
        raise RequestError("The end does not come after the start.")
    chosen = select(graph_of(models), filling.expand, git_change_finder(work.project)) - {model.name}
    expanded = {model_name: models[model_name] for model_name in chosen if models[model_name].sql}
    return Rendering(model, Interval(since, until) if since else None, {**work.project.models_to_inline, **expanded})


def render_query(work: Workspace, rendering: Rendering) -> str:
    """Return the query as Spark would run it; raise RequestError for a model without one."""
    if not rendering.model.sql:
        raise RequestError(f"`{rendering.model.name}` has no query: its kind is {rendering.model.kind}.")
    return render_model(rendering.model, {}, rendering.expanded, rendering.interval, work.now)


def render_audits(work: Workspace, rendering: Rendering) -> Iterator[str]:
    """Yield the queries of the model's audits; raise RequestError for a model without any."""
    model = rendering.model
    options = AuditContext(work.project.audits, embedded=rendering.expanded, execution=work.now)
    if not model.checks.audits:
        raise RequestError(f"`{model.name}` has no audits.")
    for call in model.checks.audits:
        yield audit_query(model, call, model.name, rendering.interval, options)


def write_sql(sql: str, dialect: str, *, in_one_line: bool = False) -> str:
    if dialect in SPARK:
        return _join_lines(sql) if in_one_line else _format_query(sql, dialect)
    return sqlglot.parse_one(sql, dialect="spark").sql(dialect=dialect, pretty=not in_one_line)


def check_dialect(name: str) -> str:
    """Return the name of a dialect; raise RequestError for an unknown one."""
    try:
        return parse_dialect(name, Place(""))
    except ProjectError as error:
        raise RequestError(error.message, hint=error.hint) from None


def _join_lines(sql: str) -> str:
    """Join the lines of a query; a line break inside quoted text is not changed."""
    return _BLANKS.sub(lambda match: " " if match[0].isspace() else match[0], sql).strip()


def _format_query(sql: str, dialect: str) -> str:
    """Format the query, or return it unchanged if formatting would alter its tokens."""
    text = format_tree(spark_tree(sql), dialect)
    old_tokens, new_tokens = (tokenize(SourceText("", version, dialect)) for version in (sql, text))
    return sql.strip() if tokens_differ(old_tokens, new_tokens) else text
