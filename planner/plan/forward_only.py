"""Forward-only changes: existing rows stay, and only what is computed from now on comes from the new query.

The new table takes over the files of the one it replaces, so that nothing is read and nothing is computed, and the old
one stays whole for a rollback. No query would return the rows of such a table: its readers see that, and it is never
taken for another table.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from mergeplan.planner.errors import RequestError
from mergeplan.planner.fingerprint import digest, encode_text
from mergeplan.planner.intervals import Interval, Timeline, subtract_intervals
from mergeplan.planner.model.graph import Graph
from mergeplan.planner.model.model import Column, History, Model
from mergeplan.planner.model.selection import select
from mergeplan.planner.plan.category.categorize import Verdict, changed_settings, layout_settings, row_settings
from mergeplan.planner.plan.change import Blocker, Category, Change, Forward
from mergeplan.planner.plan.schedule import Loaded
from mergeplan.planner.semantics.digests import TableDigest
from mergeplan.planner.snapshot.snapshot import Snapshot, table_digest_at

# settings that say how a table is partitioned, and what its rows mean
CUT = ("kind", "time_column", "interval_unit", "partitioned_by", "history", "insert_overwrite")
WHOLE_NUMBERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}  # type -> decimal digits
DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


@dataclass(frozen=True)
class ForwardOnly:
    """The options of a request about forward-only changes.

    `every`: each change is one. `since` (UTC): the new query holds from then on, in the past too. `preview`:
    environments beside prod get a preview. `destructive` and `additive` (selectors): columns of these models may go or
    come, whatever the models themselves say.
    """

    every: bool = False
    since: datetime | None = None
    preview: bool = True
    destructive: tuple[str, ...] = ()
    additive: tuple[str, ...] = ()


NOT_ASKED = ForwardOnly()


@dataclass(frozen=True)
class Finding:
    """The effect of a forward-only change on a column: `policy` is what the model says about it."""

    column: str
    verb: str
    policy: str


def resolve_selectors(request: ForwardOnly, graph: Graph, now: datetime) -> ForwardOnly:
    """Return the request with its selectors resolved to models; raise RequestError for options that contradict."""
    if request.since and not request.every:
        raise RequestError("A forward-only plan alone has an effective date.", hint="Add `--forward-only`.")
    if request.since and request.since > now:
        raise RequestError(f"The effective date {request.since:%Y-%m-%d} is in the future.", hint="Leave it out.")
    return replace(
        request,
        destructive=tuple(sorted(select(graph, request.destructive))),
        additive=tuple(sorted(select(graph, request.additive))),
    )


def why_not(old: Model, new: Model) -> str:
    """Return why a change cannot be forward-only, because its table cannot keep its rows; '' if it can."""
    if new.kind.is_seed:
        return "a seed is loaded whole"
    # The new table takes over files. They stay readable only if partitions and the meaning of rows stay the same.
    old_settings, new_settings = row_settings(old), row_settings(new)
    kept_history = _keep_history(old.history, new.history) if old.history and new.history else None
    if old.kind is not new.kind and not (kept_history and kept_history.dbt):
        return f"its kind changed from {old.kind} to {new.kind}"
    if kept_history:
        old_settings = {**old_settings, "kind": new_settings["kind"], "history": encode_text(kept_history)}
    if changed := [name for name in CUT if old_settings[name] != new_settings[name]]:
        return f"its `{changed[0]}` changed, and with it how the table is cut"
    if changed := [
        name for name in changed_settings(layout_settings(old), layout_settings(new)) if name != "physical_properties"
    ]:
        return f"its `{changed[0]}` changed, and with it its files"
    return ""


def _keep_history(old: History, new: History) -> History:
    """Return the old settings with those of the new ones that only say when a version begins or ends from now on.

    For a snapshot of dbt these are its strategy and its column of times, too: dbt goes on with the table that is there.
    """
    history = replace(old, columns=new.columns, invalidates_deleted=new.invalidates_deleted)
    if old.dbt is None or new.dbt is None:
        return history
    return replace(history, updated_at=new.updated_at, dbt=replace(old.dbt, since=new.dbt.since))


def build_mixed_snapshot(old: Snapshot, fresh: Snapshot, version: str, *, recomputes: bool) -> Snapshot:
    """Return the snapshot at a version whose table keeps the old one's rows, or `recomputes` the latest of them.

    Where the new query means the same as the old one, readers see in it what they saw in the old one. Elsewhere they
    see a digest that no query and no other table has.
    """
    assert fresh.meaning is not None
    before, query, new = old.visible_digest, old.raw, table_digest_at(fresh.meaning, version)
    # `before` is what the old table holds, and `query` what its query meant, which is not the same after an earlier
    # forward-only change: a column is the old one only if the query still means what it meant.

    def choose_digest(old_digest: str | None, old_meaning: str | None, means: str, fresh_digest: str) -> str:
        # Rows that are computed again are what they were only if they came of this very query, and not of an earlier
        # one or of a clock.
        is_same = old_meaning == means and (not recomputes or old_digest == old_meaning)
        return old_digest if old_digest and is_same else digest("forward-only", version, fresh_digest)[:24]

    rows = choose_digest(before.rows, query.rows, fresh.raw.rows, new.rows)
    columns = {
        name: choose_digest(before.columns.get(name), query.columns.get(name), fresh.raw.columns[name], column_digest)
        for name, column_digest in new.columns.items()
    }
    return _set_visible_rows(replace(fresh, version=version, forced=True), TableDigest(rows, columns))


def still_mixed(snapshot: Snapshot, old: Snapshot, *, keeps_table: bool = False) -> Snapshot:
    """Return the snapshot with the visible rows of the old one if a forward-only change kept them there."""
    if not old.is_mixed:
        return snapshot
    mixed = _set_visible_rows(replace(snapshot, forced=True), old.visible_digest)
    if not keeps_table:
        return mixed
    assert mixed.meaning is not None
    meaning = replace(mixed.meaning, types=old.meaning.types if old.meaning else ())
    return replace(mixed, columns=old.columns, meaning=meaning)


def _set_visible_rows(snapshot: Snapshot, visible_digest: TableDigest) -> Snapshot:
    assert snapshot.meaning is not None
    held = tuple(visible_digest.columns.items())
    return replace(snapshot, meaning=replace(snapshot.meaning, held_rows=visible_digest.rows, held=held))


def apply_forward_only(
    rule_verdict: Verdict,
    old: Model,
    new: Model,
    was_edited: bool,
    forward_only_parents: tuple[str, ...],
    request: ForwardOnly,
) -> Verdict:
    # a layout change copies rows, which keeps them anyway; a seed of a forward-only plan is loaded again, and
    # only its readers keep their rows
    if rule_verdict.rule == "layout-changed" or (why_not(old, new) and not (request.every and new.kind.is_seed)):
        return rule_verdict
    if new.policy.forward_only and new.kind.is_stored:
        rule = "forward-only-model"
        cause = "It is incremental in dbt" if new.written.dbt_text else "Its kind is `forward_only`"
    elif was_edited and request.every:
        rule, cause = "forward-only-plan", "The plan is forward-only"
    elif forward_only_parents:
        rule = "reads-forward-only"
        cause = f"Only forward-only changes touch it (of {', '.join(f'`{name}`' for name in forward_only_parents)})"
    else:
        return rule_verdict
    reason = f"{cause}: {_rows_kept(new, request.since)}. {rule_verdict.reason}"
    return Verdict(Category.FORWARD_ONLY, rule, reason, rule_verdict.columns)


def _rows_kept(model: Model, since: datetime | None) -> str:
    if model.kind.is_seed:
        return "it is loaded again, and the models that read it keep their rows"
    if since is None or not model.kind.is_stored:
        return "existing rows stay"
    if model.kind.is_by_time:
        return f"the rows before {model.cron.cut(since):%Y-%m-%d} stay"
    return "existing rows stay" if model.kind.is_order_dependent else "its table is computed as a whole"


def going_on(old: Snapshot, new: Snapshot, table_state: Loaded, request: ForwardOnly) -> Forward:
    """Return how the table of a forward-only change continues: with all old rows, or those before a date."""
    model = new.model

    def policy(own: str, allowed_names: tuple[str, ...]) -> str:
        return "allow" if model.name in allowed_names and own != "ignore" else own

    return Forward(
        _time_before(model, table_state.timeline_of(old), request.since),
        policy(model.policy.on_destructive_change, request.destructive),
        policy(model.policy.on_additive_change, request.additive),
    )


def _time_before(model: Model, held_time: Timeline, since: datetime | None) -> Timeline:
    if since is None or not held_time:
        return held_time
    if not model.kind.is_by_time:
        return held_time if model.kind.is_order_dependent else ()  # FULL: it is computed whole, or not at all
    # the interval that contains the date is recomputed as a whole
    cut = model.cron.cut(since)
    if cut < held_time[-1].end:
        return subtract_intervals(held_time, (Interval(min(cut, held_time[-1].end), held_time[-1].end),))
    return held_time


def include_inherited_rows(table_state: Loaded, changes: Iterable[Change]) -> Loaded:
    """Return what tables hold, with those that will take over rows as if they held them already."""
    # the last one wins: what a table is known to hold outweighs what it will take over
    changes = tuple(changes)
    new = {c.new.table: c.forward.rows for c in changes if c.new and c.forward and c.keeps_rows}
    new |= {c.new.table: c.adopts.rows for c in changes if c.new and c.adopts}
    outdated_tables = {
        c.new.table for c in changes if c.new and subtract_intervals(c.takes_over, table_state.timeline_of(c.new))
    }
    if not new and not outdated_tables:
        return table_state
    timelines = table_state.timelines.items()
    held_timelines = {name: timeline for name, timeline in timelines if timeline and name not in outdated_tables}
    return replace(table_state, timelines={**new, **held_timelines})


def schema_findings(
    before: Iterable[str], after: Iterable[str], destructive: str, additive: str
) -> tuple[Finding, ...]:
    old, new = tuple(before), tuple(after)
    gone = [Finding(name, "drops", destructive) for name in old if name not in new]
    come = [Finding(name, "adds", additive) for name in new if name not in old]
    return (*gone, *come)


def blocker_of(model: Model, finding: Finding) -> Blocker:
    option = "additive" if finding.verb == "adds" else "destructive"
    message = f"`{model.name}` {finding.verb} the column `{finding.column}`, and its change is forward-only."
    allow = f"Allow it with `--allow-{option}-model {model.name}` or `on_{option}_change allow`, or rebuild the table."
    hint = "" if finding.policy == "warn" else f" {allow}"
    return Blocker(f"{message}{hint}", model.locate(finding.column) if finding.verb == "adds" else model.place)


def merge_columns(
    before: tuple[Column, ...], after: tuple[Column, ...], destructive: str, additive: str
) -> tuple[Column, ...]:
    """Return columns of a table that keeps another's rows: the query's, and old ones where a model says `ignore`."""
    old = {column.name: column for column in before}
    merged = []
    for column in after:
        if column.name not in old and additive == "ignore":
            continue
        old_type = old[column.name].type if column.name in old else column.type
        merged.append(replace(column, type=merge_types(old_type, column.type, destructive, additive)))
    names = {column.name for column in after}
    return (*merged, *(column for column in before if column.name not in names and destructive == "ignore"))


def merge_types(before: str, after: str, destructive: str, additive: str) -> str:
    # a wider type is an additive change, like a new column
    policy = additive if is_wider(before, after) else destructive
    return before if policy == "ignore" else after


def is_wider(old: str, new: str) -> bool:
    """Return True if Parquet's and ORC's readers read files with values of the old type correctly as the new one.

    >>> is_wider("int", "bigint"), is_wider("bigint", "int"), is_wider("decimal(10,2)", "decimal(12,2)")
    (True, False, True)
    """
    if old == new or (old in ("float", "tinyint", "smallint", "int") and new == "double"):
        return True
    to = DECIMAL.fullmatch(new)
    if old in WHOLE_NUMBERS:
        if to:
            return int(to[1]) - int(to[2]) >= WHOLE_NUMBERS[old]
        return new in WHOLE_NUMBERS and WHOLE_NUMBERS[old] < WHOLE_NUMBERS[new]
    of = DECIMAL.fullmatch(old)
    if not (of and to):
        return False
    return int(to[2]) >= int(of[2]) and int(to[1]) - int(to[2]) >= int(of[1]) - int(of[2])
