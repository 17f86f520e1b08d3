"""What a table holds, as hashes: equal ones say that two tables hold the same rows, whatever their order and files.

What is compared is always named: some columns of a table, and a period of it. What is not known is equal to nothing.
"""

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


def content(columns: Sequence[tuple[str, str]], rows: int, sums: tuple[int, int]) -> Content:
    """The content of so many rows with these columns (names and types), given two sums over 64-bit hashes of each row.

    Sums and not XOR, which two equal rows would leave as it was. No rows have one content for each choice of columns
    and types: an empty table of numbers is no empty table of texts.
    """
    said = (part for pair in columns for part in pair)
    return Content(rows, digest(FORM, str(rows), *map(str, sums), *said)[:32])


def empty(columns: Sequence[tuple[str, str]]) -> Content:
    """The content of no rows with these columns."""
    return content(columns, 0, (0, 0))


def columns_key(columns: Iterable[str]) -> str:
    """A short name (32 hex digits) for a set of columns, the same in every process."""
    return digest(*sorted(set(columns)))[:32]


@dataclass(frozen=True)
class Contents:
    """What is known of one table: the key of a column set -> period -> what the table holds there.

    A period is the value of a partition (`2026-01-01`, `2026-01-01 10:00:00`) or `WHOLE`. One without rows is there
    with `empty` content; one that is not there was not looked at.
    """

    known: Mapping[str, Mapping[str, Content]] = field(default_factory=dict)

    def period_contents(self, columns: ColumnSet) -> Mapping[str, Content]:
        """Period -> content of these columns, for the periods that are known."""
        return self.known.get(columns_key(columns), {})

    def plus(self, findings: Found) -> Contents:
        """This, and what was found since: it replaces what was known of the same periods."""
        known = dict(self.known)
        for columns, periods in findings.items():
            known[columns_key(columns)] = {**self.period_contents(columns), **periods}
        return Contents(known)


def equal_periods(one: Contents, other: Contents, columns: ColumnSet, periods: Iterable[str]) -> frozenset[str]:
    """Those of the periods in which both tables are known to hold the same rows of these columns.

    A period that is not known on both sides is not among them. The caller says which periods matter: tables that are
    to be equal as a whole must be so in every period that either of them holds.
    """
    mine, theirs = one.period_contents(columns), other.period_contents(columns)
    return frozenset(period for period in periods if period in mine and mine[period] == theirs.get(period))
