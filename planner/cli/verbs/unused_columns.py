"""lineage --unused-columns: the columns that nothing needs, as text or JSON."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from mergeplan.planner.catalog.catalog import UnusedColumn
from mergeplan.planner.contract.from_catalog import unused_rows
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.contract.wire import serialize_line
from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.selection import strip_default_catalog
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.session.use_cases.catalog import list_unused_columns
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.wording import count_noun, join_names


def print_unused_columns(work: Workspace, target: str | None, output: str, path: Path | None) -> int:
    """Print or write the report; raise RequestError for a form that it does not have."""
    if output not in ("text", "json"):
        raise RequestError(f"`--unused-columns` is not drawn as `{output}`.", hint="Use `-o text` or `-o json`.")
    columns = list_unused_columns(work)
    if target is not None:
        name = strip_default_catalog(target.lower(), work.project.catalogs.default)
        if name not in work.project.models:
            raise RequestError(f"There is no model `{target}`.", hint=did_you_mean(name, work.project.models))
        columns = tuple(column for column in columns if column.model == name)
    if output == "json":
        text = serialize_line(ResultLine(ok=True, unused_columns=unused_rows(columns)))
    else:
        text = "\n".join(_report_lines(columns))
    if path is None:
        click.echo(text)
    else:
        path.write_text(f"{text}\n", encoding="utf-8")
    return 0


def _report_lines(columns: Sequence[UnusedColumn]) -> Iterator[str]:
    if not columns:
        yield "Every column is needed."
        return
    yield f"{count_noun(len(columns), 'column')} that nothing needs:"
    for column in columns:
        namers = join_names([f"`{name}`" for name in column.named_by])
        yield f"  {column.place}  {column.model}.{column.column}" + (f"  (edit {namers} first)" if namers else "")
