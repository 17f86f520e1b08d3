"""Rows, environments, revisions and differences of tables, as data that a prompt and a notebook show as a table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from html import escape

from mergeplan.planner.checks.diff.table_diff import SchemaDiff, TableDiff
from mergeplan.planner.engine.protocol import Rows
from mergeplan.planner.session.notebook.listing import HTML_MOST, Listed, Listing, cell_text, html_table
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.state.environments import Revision
from mergeplan.planner.state.passed.audit_results import RecordedAudit
from mergeplan.planner.wording import count_noun


@dataclass(frozen=True, repr=False)
class FetchedRows(Listed, Rows):
    def listing(self) -> Listing:
        rows = tuple(tuple(map(cell_text, row)) for row in self.rows)
        return Listing(count_noun(len(rows), "row"), self.columns, rows)


class Environments(Listed, tuple[Environment, ...]):
    """Environments: a tuple that shows itself as a table."""

    __slots__ = ()

    def listing(self) -> Listing:
        columns = ("Environment", "Models", "Views", "Revision", "Plan", "Promoted (UTC)", "Expires (UTC)")
        rows = tuple(
            (
                environment.name,
                str(len(environment.snapshots)),
                str(len(environment.views)),
                str(environment.revision),
                environment.plan_id,
                _format_moment(environment.promoted_at),
                _format_moment(environment.expires_at),
            )
            for environment in self
        )
        return Listing(count_noun(len(self), "environment"), columns, rows).drop_empty_columns()


class History(Listed, tuple[Revision, ...]):
    """Revisions of an environment: a tuple that shows itself as a table."""

    __slots__ = ()

    def listing(self) -> Listing:
        columns = ("Revision", "Action", "Plan", "At (UTC)", "Models", "Who", "Note")
        rows = tuple(
            (
                str(row.revision),
                str(row.action),
                row.plan_id,
                _format_moment(row.at),
                str(len(row.snapshots)),
                row.who,
                row.note,
            )
            for row in self
        )
        of = f" of `{self[0].environment}`" if self else ""
        return Listing(count_noun(len(self), "revision") + of, columns, rows).drop_empty_columns()


class RecordedAudits(Listed, tuple[RecordedAudit, ...]):
    """Results of audits as they were recorded: a tuple that shows itself as a table."""

    __slots__ = ()

    def listing(self) -> Listing:
        columns = ("At (UTC)", "Model", "Audit", "Arguments", "Outcome", "Rows", "Of")
        rows = tuple(
            (
                _format_moment(result.at),
                result.model,
                result.audit,
                ", ".join(f"{name} := {value}" for name, value in result.arguments),
                result.outcome,
                f"{result.rows:,}",
                str(result.interval or ""),
            )
            for result in self
        )
        title = count_noun(len(self), "recorded result") + ", newest first" if self else "No audit has run."
        return Listing(title, columns, rows).drop_empty_columns()


class TableDiffs(Listed, tuple[TableDiff, ...]):
    """Differences of tables: a tuple that shows itself as a table, and in a notebook the sampled rows below it."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return self.listing().html(*(part for diff in self for part in samples_html(diff)))

    def listing(self) -> Listing:
        columns = ("Compared", "Columns", "Rows", "Rows that differ", "Columns that differ")
        if not self:
            return Listing("No table differs.", columns, ())
        equal_count = sum(diff.same for diff in self)
        title = f"{count_noun(len(self), 'table')} compared, {equal_count} the same"
        return Listing(title, columns, tuple(map(_diff_row, self))).drop_empty_columns()


def _diff_row(diff: TableDiff) -> tuple[str, ...]:
    (first, second), rows = diff.names, diff.rows
    counts = ((rows.changed, "changed"), (rows.only[0], f"in {first} only"), (rows.only[1], f"in {second} only"))
    differ = ", ".join(f"{count:,} {where}" for count, where in counts if count)
    return (
        f"{diff.model}: {first} and {second}" if diff.model else f"{first} and {second}",
        schema_text(diff.schema),
        "" if diff.same_files else f"{rows.counts[0]:,} → {rows.counts[1]:,}",
        "none: both are the same files" if diff.same_files else differ or "none",
        ", ".join(f"{name} ({count:,})" for name, count in rows.columns if count),
    )


def schema_text(schema: SchemaDiff) -> str:
    """Return the columns that one of two tables lacks (`+ name`, `- name`), or has of another type (`~ name`)."""
    columns = [f"+ {name} {kind}" for name, kind in schema.added]
    columns += [f"- {name} {kind}" for name, kind in schema.removed]
    return ", ".join([*columns, *(f"~ {name} {old} → {new}" for name, old, new in schema.retyped)])


def samples_html(diff: TableDiff) -> list[str]:
    first, second = diff.names
    samples = diff.samples
    sorts = {
        "Rows that differ": samples.changed,
        f"Rows in {first} only": samples.only_first,
        f"Rows in {second} only": samples.only_second,
    }
    of = f"{diff.model}: " if diff.model else ""
    parts = []
    for title, rows in sorts.items():
        if rows.rows:
            titles = [_column_title(name, diff) if rows is samples.changed else name for name in rows.columns]
            table = html_table(titles, [map(cell_text, row) for row in rows.rows[:HTML_MOST]])
            parts.append(f"<details><summary>{escape(of + title)}</summary>{table}</details>")
    return parts


def _column_title(name: str, diff: TableDiff) -> str:
    """Return the column of a changed row with its table: `prod: amount`."""
    for prefix, table in zip(("s__", "t__"), diff.names, strict=True):
        if name.startswith(prefix) and name not in diff.key:
            return f"{table}: {name.removeprefix(prefix)}"
    return name


def _format_moment(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}" if moment else ""
