"""The freshness of tables, as data that a prompt and a notebook show as a table."""

from __future__ import annotations

from collections import Counter

from mergeplan.planner.checks.freshness import FreshnessResult, FreshnessStatus
from mergeplan.planner.session.notebook.listing import Listed, Listing
from mergeplan.planner.wording import age_text, count_noun, join_names, lateness_text


class FreshnessResults(Listed, tuple[FreshnessResult, ...]):
    """How old tables are: a tuple that shows itself as a table."""

    __slots__ = ()

    @property
    def ok(self) -> bool:
        """True if no table is late by `error_after`, and each age could be measured."""
        return all(result.ok for result in self)

    def listing(self) -> Listing:
        columns = ("Status", "Model", "Age", "Late after", "Newest (UTC)", "Measured by", "Owner", "Message")
        rows = tuple(
            (
                str(result.status),
                result.model.name,
                age_text(result.age.total_seconds()) if result.age is not None else "",
                lateness_text(result.freshness.warn_after, result.freshness.error_after),
                f"{result.newest_at:%Y-%m-%d %H:%M:%S}" if result.newest_at else "",
                result.freshness.loaded_at or str(result.measured_by),
                result.model.metadata.owner,
                result.message,
            )
            for result in self
        )
        return Listing(self.summary, columns, rows).drop_empty_columns()

    @property
    def summary(self) -> str:
        """A sentence such as `3 tables: 2 fresh, 1 late`."""
        if not self:
            return "No table has `freshness`."
        counts = Counter(result.status for result in self)
        words = {
            FreshnessStatus.FRESH: "fresh",
            FreshnessStatus.WARN: "late (warning)",
            FreshnessStatus.ERROR: "late",
            FreshnessStatus.UNKNOWN: "not measured",
        }
        parts = [f"{counts[status]} {word}" for status, word in words.items() if counts[status]]
        return f"{count_noun(len(self), 'table')}: {join_names(parts)}."
