"""Show the results of audits, data diffs and physical plan diffs as tables in a notebook."""

from __future__ import annotations

from html import escape

from mergeplan.planner.checks.audits import AuditResult
from mergeplan.planner.checks.diff.data_diff import ModelDiff
from mergeplan.planner.checks.diff.table_diff import TableDiff
from mergeplan.planner.checks.physical_diff import PhysicalDiff
from mergeplan.planner.contract.physical import PhysicalPlanRow
from mergeplan.planner.contract.physical_words import physical_sentence
from mergeplan.planner.session.notebook.listed_results import samples_html, schema_text
from mergeplan.planner.session.notebook.listing import Listed, Listing, cell_text, html_table
from mergeplan.planner.wording import count_noun

BASE, ENVIRONMENT = "prod", "the environment"


class DataDiffs(Listed, tuple[ModelDiff, ...]):
    """Differences of models' rows: a tuple that shows itself as a table, in a notebook with sampled rows below it."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return self.listing().html(*(part for diff in self for part in _render_samples(diff)))

    def listing(self) -> Listing:
        columns = ("Model", "Columns", "Rows", "Rows that differ", "Columns that differ", "Compared")
        if not self:
            return Listing("No table differs from prod's.", columns, ())
        left_out = sum(diff.rows is None for diff in self)
        title = count_noun(len(self) - left_out, "model") + " compared" + (f", {left_out} not" if left_out else "")
        return Listing(title, columns, tuple(map(_data_row, self))).drop_empty_columns()


class PhysicalDiffs(Listed, tuple[PhysicalDiff, ...]):
    """Differences of physical plans: a tuple that shows itself as a table, with a row for each change."""

    __slots__ = ()

    def listing(self) -> Listing:
        rows = [
            (diff.model, sentence)
            for diff in self
            for sentence in (
                *(physical_sentence(change, str) for change in PhysicalPlanRow.model_validate(diff).changes),
                *filter(None, [diff.note]),
            )
        ]
        title = f"{count_noun(len(self), 'query', 'queries')} explained before and after"
        return Listing(title, ("Model", "Physical plan"), tuple(rows))


class AuditResults(Listed, tuple[AuditResult, ...]):
    """Results of audits: a tuple that shows itself as a table, and in a notebook the failing rows below it."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return self.listing().html(*(part for result in self for part in _failing_rows(result)))

    def listing(self) -> Listing:
        failed = sum(not result.ok for result in self)
        rows = tuple(map(_audit_row, self))
        title = f"{count_noun(len(self), 'audit')} ran, {failed} failed"
        return Listing(title, ("Audit", "Model", "Result", "Failing rows", "Where"), rows).drop_empty_columns()


def _data_row(diff: ModelDiff) -> tuple[str, ...]:
    rows = diff.rows
    sizes = rows.counts if rows else diff.counts
    counts = ((rows.changed, "changed"), (rows.only[0], "gone"), (rows.only[1], "new")) if rows else ()
    differ = ", ".join(f"{count:,} {effect}" for count, effect in counts if count)
    days = ", ".join(map(str, diff.days))
    key = f"by {', '.join(diff.key)}" if diff.key else ""
    return (
        diff.model,
        schema_text(diff.schema),
        f"{sizes[0]:,} → {sizes[1]:,}" if sizes else "",
        differ or ("none: the same files" if diff.same_files else "none" if rows else "not compared"),
        ", ".join(f"{name} ({count:,})" for name, count in rows.columns if count) if rows else "",
        "; ".join(filter(None, (days, key, diff.note))),
    )


def _render_samples(diff: ModelDiff) -> list[str]:
    if diff.rows is None:
        return []
    return samples_html(TableDiff((BASE, ENVIRONMENT), diff.key, diff.schema, diff.rows, diff.samples, diff.model))


def _audit_row(result: AuditResult) -> tuple[str, ...]:
    verdict = "passed" if result.ok else "failed" if result.blocking else "warning"
    return (
        result.name,
        result.model or ", ".join(result.reads),
        verdict,
        f"{result.count:,}" if result.count else "",
        str(result.place or ""),
    )


def _failing_rows(result: AuditResult) -> list[str]:
    if not result.sample.rows:
        return []
    title = f"{result.model}: {result.name}" if result.model else result.name
    rows = html_table(result.sample.columns, [map(cell_text, row) for row in result.sample.rows])
    return [f"<details><summary>{escape(title)}</summary>{rows}</details>"]
