"""Hashes of contents, by columns and period: equal ones mean equal rows, in any order; unknown ones equal nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mergeplan.planner.fingerprint import digest

ColumnSet = tuple[str, ...]  # sorted names, in lower case; () asks for the number of rows alone
Found = Mapping[ColumnSet, Mapping[str, "Content"]]  # column set -> period -> content: what a Spark answers

FORM = "1"  # of the hashes that Spark computes: to be raised with every change of them
WHOLE = ""  # the period of all that a table holds


@dataclass(frozen=True)
class Content:
    """The number of rows, and a hash (32 hex digits) over the rows as a multiset and their columns' names and types."""

    rows: int
    hash: str


def build_content(columns: Sequence[tuple[str, str]], rows: int, sums: tuple[int, int]) -> Content:
    """Return the content of rows with these columns (names and types), from two sums over 64-bit hashes of each row.

    Sums and not XOR, which two equal rows would leave unchanged. No rows have one content for each choice of columns
    and types: an empty table of numbers differs from an empty table of texts.
    """
    column_texts = (part for pair in columns for part in pair)
    return Content(rows, digest(FORM, str(rows), *map(str, sums), *column_texts)[:32])


def empty_content(columns: Sequence[tuple[str, str]]) -> Content:
    return build_content(columns, 0, (0, 0))


def columns_key(columns: Iterable[str]) -> str:
    """Return a short name (32 hex digits) for a set of columns, the same in every process."""
    return digest(*sorted(set(columns)))[:32]


@dataclass(frozen=True)
class Contents:
    """The known contents of one table: the key of a column set -> period -> what the table holds there.

    A period is the value of a partition (`2026-01-01`, `2026-01-01 10:00:00`) or `WHOLE`. A period without rows has
    `empty_content`; a missing period was not computed.
    """

    known: Mapping[str, Mapping[str, Content]] = field(default_factory=dict)

    def period_contents(self, columns: ColumnSet) -> Mapping[str, Content]:
        return self.known.get(columns_key(columns), {})

    def plus(self, findings: Found) -> Contents:
        """Return these contents with later findings, which replace what was known of the same periods."""
        contents = dict(self.known)
        for columns, periods in findings.items():
            contents[columns_key(columns)] = {**self.period_contents(columns), **periods}
        return Contents(contents)


def equal_periods(one: Contents, other: Contents, columns: ColumnSet, periods: Iterable[str]) -> frozenset[str]:
    """Return the periods in which both tables are known to hold the same rows of these columns.

    A period that is not known on both sides is not among them. The caller says which periods matter: tables that are to
    be equal as a whole must be so in every period that either of them holds.
    """
    contents_one, contents_other = one.period_contents(columns), other.period_contents(columns)
    return frozenset(
        period for period in periods if period in contents_one and contents_one[period] == contents_other.get(period)
    )
