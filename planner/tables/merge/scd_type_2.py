"""SCD type 2: each version of a row, with the time in which it was in force; a version in force has no end.

NULL in a key is a value like any other: a history of "no region" is one history. Earlier releases matched NULL with
nothing and began a version in each batch; of such versions each ends where the next begins (`_base_versions`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sqlglot import exp

from mergeplan.planner.engine.protocol import MergeInto
from mergeplan.planner.model.model import Column, History
from mergeplan.planner.parsing.sql.spark_text import spark_text
from mergeplan.planner.tables.merge.relations import (
    KEY,
    PRESENT,
    MergeBatch,
    absent_condition,
    cast_value,
    greatest_value,
    key_conditions,
    keys_of_sides,
    merge_text,
    never_condition,
    side_column,
    source,
    target,
)

MARK, BEGINS, ENDS, GONE = "mergeplan_does", "begins", "ends", "gone"  # what a row of a MERGE does
HELD = "mergeplan_held"
EVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class _Versions:
    """The terms of one merge; `execution` is the moment of the run, in UTC."""

    batch: MergeBatch
    history: History
    execution: datetime

    @property
    def is_by_time(self) -> bool:
        return bool(self.history.updated_at)

    @property
    def change_time(self) -> exp.Expr:
        """The time at which a matched row changed to another version: its own update time, or the time of the run."""
        if self.is_by_time:
            return cast_value(side_column("source", self.history.updated_at), self.history.type)
        return self.now

    def boundary(self, moment: exp.Expr) -> exp.Expr:
        """Return the end of the version that `moment` ends, never before its begin; the next version begins with it."""
        return greatest_value(moment, side_column("target", self.history.valid_from))

    @property
    def first_change_time(self) -> exp.Expr:
        """The begin of a new key's version if it begins when it was seen; since 1970 if the row states no time."""
        return exp.Coalesce(this=self.change_time, expressions=[self.moment(EVER)]) if self.is_by_time else self.now

    @property
    def now(self) -> exp.Expr:
        return self.moment(self.execution)

    def moment(self, at: datetime) -> exp.Expr:
        return cast_value(exp.Literal.string(f"{at.astimezone(UTC).replace(tzinfo=None)}"), self.history.type)

    @property
    def nothing(self) -> exp.Expr:
        return cast_value(exp.null(), self.history.type)

    @property
    def is_new_version(self) -> exp.Expr:
        """The condition that a row is another version of the one in force."""
        if self.is_by_time:
            source, target = (side_column(side, self.history.updated_at) for side in ("source", "target"))
            first = exp.and_(target.copy().is_(exp.null()), source.copy().is_(exp.null()).not_())
            return exp.Coalesce(this=source > target, expressions=[first])  # NULL is before every time
        pairs = (
            (side_column("source", name), side_column("target", name))
            for name in self.history.columns or self.batch.names
        )
        equal = (exp.NullSafeEQ(this=source_value, expression=target_value) for source_value, target_value in pairs)
        return exp.or_(*map(exp.not_, equal))

    @property
    def validity_columns(self) -> tuple[Column, Column]:
        """The columns that the table has in addition to those of the query."""
        return Column(self.history.valid_from, self.history.type), Column(self.history.valid_to, self.history.type)

    @property
    def begins(self) -> exp.Expr:
        """The condition that a row of the batch is a version of its own."""
        return exp.and_(exp.not_(absent_condition("source")), exp.or_(absent_condition("target"), self.is_new_version))

    def row(self, side: str, valid_from: exp.Expr, valid_to: exp.Expr, mark: str = "") -> exp.Expr:
        validity_columns = (
            valid_from.as_(self.history.valid_from, quoted=True),
            valid_to.as_(self.history.valid_to, quoted=True),
        )
        columns = (side_column(side, name).as_(name, quoted=True) for name in self.batch.names)
        marks = (exp.Literal.string(mark).as_(MARK),) if mark else ()
        return exp.Struct(expressions=[*columns, *validity_columns, *marks])


def versions(batch: MergeBatch, history: History, execution: datetime) -> str:
    """Return the SELECT of the table's content after a run at `execution`.

    At the first load a new key is valid since 1970. Later it is valid since 1970 if versions are by time, and since the
    run if they are by column. With `begins_when_seen` it is always valid since its update (by time) or since the run
    (by column). A key that comes back is valid since it went, or later. A query that returns two rows of one key fails.
    """
    made = _Versions(replace(batch, null_safe=True), history, execution)
    batch = made.batch
    if not batch.base:
        began = made.first_change_time if history.begins_when_seen else made.moment(EVER)
        columns = (exp.column(name, quoted=True) for name in batch.names)
        ends = (
            cast_value(began, history.type).as_(history.valid_from, quoted=True),
            made.nothing.as_(history.valid_to, quoted=True),
        )
        first = exp.select(*columns, *ends).from_("source").where(exp.column(PRESENT))
        return merge_text(batch, first.with_("source", as_=source(batch)))
    return merge_text(batch, _over_both(made, _expand_versions(_join_versions(made))))


def versions_into(batch: MergeBatch, history: History, execution: datetime) -> MergeInto | None:
    """Return the same as a MERGE INTO the batch's base: versions that begin are added, others are given their end.

    Return None if a key is more than columns of the model and functions of them. For a table in which one key has
    several versions in force (`find_double_versions`), only the SELECT is correct.
    """
    made = _Versions(replace(batch, null_safe=True), history, execution)
    batch, keys = made.batch, keys_of_sides(batch)
    if keys is None:
        return None
    rows = _expand_versions(_select_changes(made))
    end = side_column("target", history.valid_to).this, made.boundary(side_column("source", history.valid_to))
    ended = " = ".join(map(spark_text, end))
    equal_keys = [
        exp.NullSafeEQ(this=target_key.copy(), expression=source_key.copy()) for target_key, source_key in keys
    ]
    changed = exp.Coalesce(this=made.is_new_version, expressions=[exp.false()])
    since = side_column("target", made.history.valid_from), side_column("source", made.history.valid_from)
    itself = exp.and_(exp.NullSafeEQ(this=since[0], expression=since[1]), exp.not_(changed.copy()))
    mark = side_column("source", MARK)
    ifs = [
        exp.If(this=mark.copy().eq(exp.Literal.string(GONE)), true=exp.true()),
        exp.If(this=mark.copy().eq(exp.Literal.string(ENDS)), true=changed),
    ]
    unended = exp.paren(exp.or_(_is_open_condition(made), never_condition(keys[0][1])))
    return MergeInto(
        merge_text(batch, _over_both(made, rows)),
        spark_text(exp.and_(unended, *equal_keys, exp.Case(ifs=ifs, default=itself))),
        (f"WHEN MATCHED AND source.{MARK} <> '{BEGINS}' THEN UPDATE SET {ended}",),
        added=f"source.{MARK} = '{BEGINS}'",
        mark=MARK,
    )


def find_double_versions(batch: MergeBatch, history: History) -> str:
    """Return the SELECT of a row if the table holds several versions in force of one key with a NULL."""
    keys = [exp.column(f"{KEY}{n}") for n in range(len(batch.keys))]
    held_rows = target(batch, history.added_columns).subquery(HELD)
    several = exp.Count(this=exp.Star()) > 1
    rows = exp.select("1").from_(held_rows).where(_is_of_null_key(batch, history)).group_by(*keys).having(several)
    return spark_text(rows.limit(1))


def _over_both(builder: _Versions, rows: exp.Select) -> exp.Select:
    batch, history = builder.batch, builder.history
    names = [
        *batch.names,
        history.valid_from,
        history.valid_to,
        PRESENT,
        *(f"{KEY}{n}" for n in range(len(batch.keys))),
    ]
    condition = _is_of_null_key(batch, history)
    keyed_versions = (
        exp.select(*(exp.column(name, quoted=True) for name in names)).from_(HELD).where(exp.not_(condition))
    )
    values = [_next_begin(builder) if name == history.valid_to else exp.column(name, quoted=True) for name in names]
    ctes = {
        HELD: target(builder.batch, builder.validity_columns),
        "target": exp.union(keyed_versions, exp.select(*values).from_(HELD).where(condition.copy()), distinct=False),
        "source": source(builder.batch),
    }
    for name, rows_of_side in ctes.items():
        rows = rows.with_(name, as_=rows_of_side)
    return rows


def _next_begin(builder: _Versions) -> exp.Expr:
    """Return the next version's begin, NULL for the last; versions of one begin are in order of update, then value."""
    history, keys = builder.history, [exp.column(f"{KEY}{n}") for n in range(len(builder.batch.keys))]
    begin = exp.column(history.valid_from, quoted=True)
    values = exp.Struct(expressions=[exp.column(name, quoted=True) for name in builder.batch.names])
    updated = [exp.column(history.updated_at, quoted=True)] if history.updated_at else []
    order = [begin, *updated, exp.Anonymous(this="to_json", expressions=[values])]
    lead = exp.Anonymous(this="lead", expressions=[begin.copy()])
    window = exp.Window(this=lead, partition_by=keys, order=exp.Order(expressions=order))
    return window.as_(history.valid_to, quoted=True)


def _is_of_null_key(batch: MergeBatch, history: History) -> exp.Expr:
    nulls = (exp.column(f"{KEY}{n}").is_(exp.null()) for n in range(len(batch.keys)))
    return exp.and_(exp.column(history.valid_to, quoted=True).is_(exp.null()), exp.or_(*nulls))


def _expand_versions(rows: exp.Select) -> exp.Select:
    every = exp.Column(this=exp.Star(), table=exp.to_identifier("version"))
    return exp.select(every).from_(rows.subquery("opened"))


def _explode_versions(versions: Sequence[exp.Expr]) -> exp.Select:
    present_versions = exp.Anonymous(
        this="array_compact", expressions=[exp.Anonymous(this="array", expressions=[*versions])]
    )
    return exp.select(exp.Anonymous(this="explode", expressions=[present_versions]).as_("version"))


def _select_changes(builder: _Versions) -> exp.Select:
    """Return the effect of a batch on the versions in force: each that begins, and the rows by which others end."""
    is_replaced = exp.and_(
        exp.not_(absent_condition("target")), exp.not_(absent_condition("source")), builder.is_new_version
    )
    versions = [
        exp.Case(
            ifs=[exp.If(this=is_replaced, true=builder.row("source", builder.nothing, builder.change_time, ENDS))]
        ),
        exp.Case(ifs=[exp.If(this=builder.begins, true=_new_version(builder, BEGINS))]),
    ]
    if builder.history.invalidates_deleted:
        gone = builder.row("target", builder.nothing, builder.now, GONE)
        versions.append(exp.Case(ifs=[exp.If(this=absent_condition("source"), true=gone)]))
    in_force = exp.select(exp.Star()).from_("target").where(_is_open_condition(builder))
    rows = _explode_versions(versions).from_(in_force.subquery("target"))
    kind = "full outer" if builder.history.invalidates_deleted else "right"
    rows = rows.join("source", on=exp.and_(*key_conditions(builder.batch)), join_type=kind)
    gone = _keys_without_version(builder).subquery("gone")
    return rows.join(gone, on=exp.and_(*key_conditions(builder.batch, "gone")), join_type="left")


def _is_open_condition(builder: _Versions) -> exp.Expr:
    return side_column("target", builder.history.valid_to).is_(exp.null())


def _join_versions(builder: _Versions) -> exp.Select:
    old = exp.Case(ifs=[exp.If(this=exp.not_(absent_condition("target")), true=_old_version(builder))])
    new = exp.Case(ifs=[exp.If(this=builder.begins, true=_new_version(builder))])
    on = exp.and_(*key_conditions(builder.batch), _is_open_condition(builder))
    rows = _explode_versions([old, new]).from_("target").join("source", on=on, join_type="full outer")
    gone = _keys_without_version(builder).subquery("gone")
    return rows.join(gone, on=exp.and_(*key_conditions(builder.batch, "gone")), join_type="left")


def _old_version(builder: _Versions) -> exp.Expr:
    valid_from = side_column("target", builder.history.valid_from)
    valid_to = side_column("target", builder.history.valid_to)
    is_new = exp.and_(exp.not_(absent_condition("source")), builder.is_new_version)
    ifs = [exp.If(this=is_new, true=builder.boundary(builder.change_time))]
    if builder.history.invalidates_deleted:
        is_gone = exp.and_(absent_condition("source"), valid_to.copy().is_(exp.null()))
        ifs.append(exp.If(this=is_gone, true=builder.boundary(builder.now)))
    return builder.row("target", valid_from, exp.Case(ifs=ifs, default=valid_to))


def _new_version(builder: _Versions, mark: str = "") -> exp.Expr:
    """Return a version that begins: of a row that changed, of one that comes back, or of a new one."""
    gone, updated = side_column("gone", builder.history.valid_to), builder.change_time
    ifs = [exp.If(this=exp.not_(absent_condition("target")), true=builder.boundary(updated))]
    if builder.is_by_time:
        ifs.append(exp.If(this=exp.not_(gone.is_(exp.null())), true=greatest_value(gone.copy(), updated.copy())))
    by_clock = builder.history.begins_when_seen or not builder.is_by_time
    began = builder.first_change_time if by_clock else builder.moment(EVER)
    return builder.row("source", exp.Case(ifs=ifs, default=began), builder.nothing, mark)


def _keys_without_version(builder: _Versions) -> exp.Select:
    """Return the keys without a version in force, and when their last one ended."""
    valid_to = exp.column(builder.history.valid_to, quoted=True)
    keys = [exp.column(f"{KEY}{n}") for n in range(len(builder.batch.keys))]
    latest = exp.Max(this=valid_to).as_(builder.history.valid_to, quoted=True)
    gone = exp.select(*keys, latest).from_("target").group_by(*keys)
    return gone.having(exp.Count(this=exp.Star()).eq(exp.Count(this=valid_to.copy())))
