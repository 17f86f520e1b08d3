"""SCD type 2: each version of a row, with the time in which it was in force; a version in force has no end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlglot import exp

from planner.model.model import Column, History
from planner.tables.merge.relations import KEY, PRESENT, MergeBatch, absent, cast, matched, of, source, target, text

EVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class _Versions:
    """The terms of one merge; `execution` is the moment of the run, in UTC."""

    batch: MergeBatch
    history: History
    execution: datetime

    @property
    def by_time(self) -> bool:
        return bool(self.history.updated_at)

    @property
    def changed_at(self) -> exp.Expr:
        """When a row that is met in another version became what it is: when it says so, or when that was noticed."""
        return cast(of("source", self.history.updated_at), self.history.type) if self.by_time else self.now

    @property
    def now(self) -> exp.Expr:
        return self.moment(self.execution)

    def moment(self, at: datetime) -> exp.Expr:
        return cast(exp.Literal.string(f"{at.astimezone(UTC).replace(tzinfo=None)}"), self.history.type)

    @property
    def nothing(self) -> exp.Expr:
        return cast(exp.null(), self.history.type)

    @property
    def changed(self) -> exp.Expr:
        """True for a row that is another version of the one in force."""
        if self.by_time:
            return of("source", self.history.updated_at) > of("target", self.history.updated_at)
        pairs = ((of("source", name), of("target", name)) for name in self.history.columns or self.batch.names)
        return exp.or_(*(exp.not_(exp.NullSafeEQ(this=one, expression=other)) for one, other in pairs))

    def row(self, side: str, valid_from: exp.Expr, valid_to: exp.Expr) -> exp.Expr:
        kept = (valid_from.as_(self.history.valid_from, quoted=True), valid_to.as_(self.history.valid_to, quoted=True))
        columns = (of(side, name).as_(name, quoted=True) for name in self.batch.names)
        return exp.Struct(expressions=[*columns, *kept])


def versions(batch: MergeBatch, history: History, execution: datetime) -> str:
    """The SELECT of what the table is to hold after a run at `execution`.

    Since when a new key is valid: since 1970 at the first load, and by time always; since its update, or since the run
    by column, when it came later or is set to. A key that comes back is valid since it went, or later.
    A query that returns two rows of one key fails.
    """
    made = _Versions(batch, history, execution)
    if not batch.base:
        began = made.changed_at if history.begins_when_seen else made.moment(EVER)
        columns = (exp.column(name, quoted=True) for name in batch.names)
        ends = (cast(began, history.type).as_(history.valid_from), made.nothing.as_(history.valid_to))
        first = exp.select(*columns, *ends).from_("source").where(exp.column(PRESENT))
        return text(batch, first.with_("source", as_=source(batch)))
    kept = (Column(history.valid_from, history.type), Column(history.valid_to, history.type))
    joined = _joined(made)
    opened = exp.select(exp.Column(this=exp.Star(), table=exp.to_identifier("version"))).from_(
        joined.subquery("joined")
    )
    opened = opened.with_("target", as_=target(batch, kept)).with_("source", as_=source(batch))
    return text(batch, opened)


def _joined(made: _Versions) -> exp.Select:
    """Each row as the versions that come of it: none, one or two."""
    in_force = of("target", made.history.valid_to).is_(exp.null())
    begins = exp.and_(exp.not_(absent("source")), exp.or_(absent("target"), made.changed))
    old = exp.Case(ifs=[exp.If(this=exp.not_(absent("target")), true=_old(made))])
    new = exp.Case(ifs=[exp.If(this=begins, true=_new(made))])
    both = exp.Anonymous(this="array_compact", expressions=[exp.Anonymous(this="array", expressions=[old, new])])
    rows = exp.select(exp.Anonymous(this="explode", expressions=[both]).as_("version")).from_("target")
    rows = rows.join("source", on=exp.and_(*matched(made.batch), in_force), join_type="full outer")
    return rows.join(_gone(made).subquery("gone"), on=exp.and_(*matched(made.batch, "gone")), join_type="left")


def _old(made: _Versions) -> exp.Expr:
    """A version that the table held: as it was, or closed."""
    valid_from, valid_to = of("target", made.history.valid_from), of("target", made.history.valid_to)
    ifs = [exp.If(this=exp.and_(exp.not_(absent("source")), made.changed), true=made.changed_at)]
    if made.history.invalidates_deleted:
        ifs.append(exp.If(this=exp.and_(absent("source"), valid_to.copy().is_(exp.null())), true=made.now))
    return made.row("target", valid_from, exp.Case(ifs=ifs, default=valid_to))


def _new(made: _Versions) -> exp.Expr:
    """A version that begins: of a row that changed, of one that comes back, of a new one."""
    gone, updated = of("gone", made.history.valid_to), made.changed_at
    ifs = [exp.If(this=exp.not_(absent("target")), true=updated)]
    if made.by_time:
        later = exp.Case(ifs=[exp.If(this=gone > updated.copy(), true=gone.copy())], default=updated.copy())
        ifs.append(exp.If(this=exp.not_(gone.copy().is_(exp.null())), true=later))
    by_clock = made.history.begins_when_seen or not made.by_time
    began = made.changed_at if by_clock else made.moment(EVER)
    return made.row("source", exp.Case(ifs=ifs, default=began), made.nothing)


def _gone(made: _Versions) -> exp.Select:
    """The keys of which no version is in force, and since when."""
    valid_to = exp.column(made.history.valid_to, quoted=True)
    keys = [exp.column(f"{KEY}{n}") for n in range(len(made.batch.keys))]
    latest = exp.Max(this=valid_to).as_(made.history.valid_to, quoted=True)
    gone = exp.select(*keys, latest).from_("target").group_by(*keys)
    return gone.having(exp.Count(this=exp.Star()).eq(exp.Count(this=valid_to.copy())))
