"""A model's change in a plan: its origin, its category with the reason, its touched columns, and its new table."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from mergeplan.planner.errors import Located
from mergeplan.planner.intervals import UNITS, Timeline, subtract_intervals
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.snapshot.snapshot import Snapshot


class ChangeKind(StrEnum):
    """The way in which a model came into the plan."""

    ADDED = "added"
    REMOVED = "removed"
    DIRECT = "direct"
    INDIRECT = "indirect"
    METADATA = "metadata"
    DUE = "due"  # not changed at all: its cron has ticked since
    RESTATED = "restated"  # not changed at all: a person wants its rows recomputed


class Category(StrEnum):
    """The effect of a change on tables; see docs/reference/categories.md."""

    BREAKING = "breaking"
    NON_BREAKING = "non_breaking"
    FORWARD_ONLY = "forward_only"
    METADATA = "metadata"
    EQUIVALENT = "equivalent"
    INDIRECT_BREAKING = "indirect_breaking"
    INDIRECT_NON_BREAKING = "indirect_non_breaking"
    UNDECIDED = "undecided"


# categories that recompute a model's table; defined here because a verdict, an override and a plan all use it
REBUILT = (Category.BREAKING, Category.NON_BREAKING, Category.UNDECIDED, Category.INDIRECT_BREAKING)


@dataclass(frozen=True)
class Columns:
    """The output columns that a change touches.

    `every` is true if it touches rows, and so all columns. `order` is true if a view may return its rows in another
    order, which matters to readers that take rows by it.
    """

    added: frozenset[str] = frozenset()
    altered: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    every: bool = False
    order: bool = False


@dataclass(frozen=True)
class Days:
    """A time [start, end) in UTC; None is unbounded."""

    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True)
class Override:
    """A person's category for one change of one model; it holds while both fingerprints stay the same.

    With `restates` it is about a model that nobody edited: its rows of these days are computed again, in a new table.
    It holds while the base shows the same table.
    """

    model: str
    category: Category
    old: str  # Fingerprint.text in the base environment, '' when the model is not there; with `restates` its version
    new: str  # Fingerprint.text of the change it is about; '' with `restates`
    who: str = ""
    at: datetime | None = None  # UTC
    restates: Days | None = None


@dataclass(frozen=True)
class Forward:
    """The way in which a forward-only change keeps existing rows.

    `rows` are the intervals that its table takes over from the one it replaces, as they are in the files. `lands` is
    what prod gets if this environment has only a preview of it; `is_copied`: that takes them over, too.
    """

    rows: Timeline = ()
    destructive: str = "error"  # what to do when a column goes or its type changes: error, warn, allow, ignore
    additive: str = "allow"  # when one comes
    lands: Snapshot | None = None
    is_copied: bool = False


@dataclass(frozen=True)
class Adoption:
    """An existing table whose rows a model's first version takes over without computing them.

    `rows` is the time that it holds, as a person declared or its rows say. `at` tells one adoption from the next.
    """

    table: str  # as it was declared
    rows: Timeline = ()
    copies: bool = False  # its rows are copied; else the new table points at its files
    moved_to: str = ""  # its name by then, where a view of the model takes the one that it has
    at: str = ""

    @property
    def place(self) -> str:
        """Its name when its rows are taken over."""
        return self.moved_to or self.table


@dataclass(frozen=True)
class Change:
    """A model of a plan: what happened to it, why, and which table it will have."""

    name: str
    change: ChangeKind
    category: Category | None  # None: added or removed
    rule: str
    reason: str
    columns: Columns
    old: Snapshot | None
    new: Snapshot | None
    recomputed: bool
    preview: bool = False  # computed from part of its parents' rows: to look at, never to promote
    shares: str | None = None  # the environment whose table it keeps, or None when the table is its own
    needed: Timeline = ()  # what its table must hold before views may show it
    missing: Timeline = ()  # what of that is not there yet
    copies: Timeline = ()  # what of that is copied from the old table, which holds the same rows
    forward: Forward | None = None  # of a forward-only change, and of what reads a preview of one
    recorded: Timeline = ()  # recorded as held and not computed: the request leaves the table empty
    lost: Timeline = ()  # what the old table holds from before the first day of the new one
    override: Override | None = None  # the category that a person chose in place of the rule's
    diff: str = ""  # unified diff of the model's text
    adopts: Adoption | None = None  # the table whose rows its own takes over
    effect: Columns = Columns()  # what of its old rows its readers cannot take from the new ones
    unchanged: tuple[tuple[str, tuple[str, ...]], ...] = ()  # parents, and their columns that were found the same
    lost_readers: tuple[tuple[str, tuple[str, ...]], ...] = ()  # columns that go, and models of the base that read them
    claim: str = ""  # names what the rules say of it, for Spark's analyzer to agree with; '' where nothing is kept

    @property
    def kind(self) -> Kind:
        snapshot = self.new or self.old
        assert snapshot is not None
        return snapshot.kind

    @property
    def is_restated(self) -> bool:
        """True for a model that nobody edited, and whose rows are computed again in a new table."""
        return self.override is not None and self.override.restates is not None

    @property
    def is_first_load(self) -> bool:
        """True if a table of dbt gets all rows of its query at once, whatever time that is recorded for."""
        untimed = self.new is not None and self.kind.is_incremental and not self.kind.is_by_time
        return untimed and bool(self.new and self.new.model.written.dbt_text) and (self.old is None or self.recomputed)

    @property
    def keeps_rows(self) -> bool:
        """True if its table goes on with rows of the table that it replaces."""
        forward = self.forward
        return forward is not None and bool(forward.rows) and (forward.lands is None or forward.is_copied)

    @property
    def lookback(self) -> int:
        return longest_lookback(self.old, self.new) if self.new else 0

    @property
    def audited(self) -> Timeline:
        """The time of its table that audits are about: not that of rows which it takes over."""
        return subtract_intervals(self.needed, self.forward.rows if self.forward else ())

    @property
    def takes_over(self) -> Timeline:
        """The rows that its table takes over again if it lacks any of them: the other table went on meanwhile."""
        forward = self.forward
        return forward.rows if forward and forward.lands is None and not self.recomputed else ()

    @property
    def lands(self) -> Snapshot | None:
        """What prod gets of it."""
        return self.forward.lands if self.forward and self.forward.lands else self.new


@dataclass(frozen=True)
class Blocker:
    """A reason that forbids the plan's promotion; a person must change the project or the request."""

    message: str
    place: Located | None = None


def longest_lookback(old: Snapshot | None, new: Snapshot) -> int:
    """Return the longer lookback of both tables, in the new one's units: late rows of the old must come into it too."""
    models = [snapshot.model for snapshot in (old, new) if snapshot and snapshot.kind is new.kind]
    unit = UNITS[new.model.cron.unit]
    return max(-(-model.batches.lookback * UNITS[model.cron.unit] // unit) for model in models)


def build_unedited_change(
    snapshot: Snapshot, kind: ChangeKind, reason: str, needed: Timeline, missing: Timeline
) -> Change:
    """Return the change of a model that nobody edited, and whose table lacks time."""
    columns, rule = Columns(), kind.value
    return Change(
        snapshot.name, kind, None, rule, reason, columns, snapshot, snapshot, False, needed=needed, missing=missing
    )
