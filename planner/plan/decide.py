"""From models to changes: walk the graph once, parents first, and decide each model by its edit and by its parents."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from planner.errors import ProjectError, ProjectErrors, RequestError
from planner.fingerprint import digest
from planner.intervals import between
from planner.model.graph import Graph
from planner.model.model import Kind, Model
from planner.naming import DEFAULT, Naming
from planner.plan.blockers import readers_of_removed, unresolved
from planner.plan.categorize import EVERY, UNTOUCHED, Side, Verdict, difference, fingerprint_of, is_edited, verdict
from planner.plan.change import Blocker, Category, Change, ChangeKind, Columns, Forward, Word
from planner.plan.early_cutoff import Comparison
from planner.plan.forward_only import (
    NOT_ASKED,
    ForwardOnly,
    blocker_of,
    going_on,
    mixed,
    ruled,
    schema_findings,
    still_mixed,
    why_not,
)
from planner.plan.parent_effects import Told, by_data, heard
from planner.plan.schedule import Loaded
from planner.semantics.columns import Parent, Shape, code_shape, model_shape
from planner.semantics.digests import Seen
from planner.snapshot.meaning import in_order, meaning_of
from planner.snapshot.snapshot import Meaning, Snapshot, at_version, version_of

ALWAYS = between(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
REBUILT = (Category.BREAKING, Category.NON_BREAKING, Category.UNDECIDED, Category.INDIRECT_BREAKING)


@dataclass
class Decisions:
    """What the walk has decided so far: the snapshot of each model, its effect on readers, and the changes.

    A request may ask for the days `since` a date only: `limited` are the models that this cuts short. What reads the
    new table of one holds part of the rows it should: it is a preview, and its version says so, so that such a table
    is never taken for the whole one.
    """

    loaded: Loaded
    limited: frozenset[str] = frozenset()
    since: str = ""
    naming: Naming = DEFAULT  # of the tables that are made anew
    forward: ForwardOnly = NOT_ASKED
    empty: bool = False  # tables that are built anew are left empty, and hold other rows than the same ones elsewhere
    going: set[str] = field(default_factory=set)  # the models whose change is forward-only
    warnings: list[Blocker] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)  # that might spare a model its recomputation
    told: dict[str, Seen] = field(default_factory=dict)  # what readers are told where a word says otherwise
    partial: set[str] = field(default_factory=set)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    effects: dict[str, Columns] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    blockers: list[Blocker] = field(default_factory=list)
    errors: list[ProjectError] = field(default_factory=list)
    used_words: list[Word] = field(default_factory=list)

    def reads_part(self, parents: Iterable[str], base: Mapping[str, Snapshot]) -> bool:
        """True when a parent's table is new and will hold part of its rows only."""
        whole = self.going if self.forward.since is None else set[str]()  # they keep all the days that there are
        return any(
            name in self.partial
            or (name in self.limited - whole and self.snapshots[name].table != _table(base.get(name)))
            for name in parents
        )

    def fills_part(self, model: Model, parents: Iterable[str], base: Mapping[str, Snapshot]) -> bool:
        """True when a new table of the model would hold part of its rows: what it reads does, or it goes in order, so
        that the days before those asked for could not be filled in later."""
        cut_short = model.goes_in_order and model.name in self.limited
        return model.kind.is_stored and (cut_short or self.reads_part(parents, base))

    def seen(self, name: str) -> Seen:
        """What the readers of a model decide by."""
        return self.told[name] if name in self.told else self.snapshots[name].seen

    def told_by(self, parents: Iterable[str], base: Mapping[str, Snapshot]) -> Mapping[str, Told]:
        """What each of these models tells its readers; where a person said breaking, no comparison says otherwise."""
        insisted = {word.model for word in self.used_words if word.category is Category.BREAKING}
        news = {name: self.effects[name] != UNTOUCHED and name not in insisted | self.going for name in parents}
        return {name: Told(base.get(name), self.snapshots[name], self.seen(name), news[name]) for name in parents}

    def add(self, change: Change, parents: Iterable[str], base: Mapping[str, Snapshot]) -> None:
        """Take in a change; it is a preview when it will be computed from part of the rows that it should read."""
        cut_short = change.new is not None and change.new.model.goes_in_order and change.name in self.limited
        preview = change.shares is None and (cut_short or self.reads_part(parents, base))
        if preview:
            self.partial.add(change.name)
        self.changes.append(replace(change, preview=preview))


def decide(
    graph: Graph,
    base: Mapping[str, Snapshot],
    words: Iterable[Word],
    base_name: str,
    loaded: Loaded,
    limited: frozenset[str] = frozenset(),
    since: str = "",
    naming: Naming = DEFAULT,
    forward: ForwardOnly = NOT_ASKED,
    empty: bool = False,
) -> Decisions:
    """Decide every model against the base; ProjectErrors when a query reads a column that is nowhere."""
    decided = Decisions(loaded, limited, since, naming, forward, empty)
    spoken: dict[str, list[Word]] = {}
    for word in words:
        spoken.setdefault(word.model, []).append(word)
    for name in graph.order:
        _decide_model(graph, name, base, spoken.get(name, []), base_name, decided)
    for name in sorted(base.keys() - graph.models.keys()):
        decided.changes.append(_removal(base[name]))
    decided.blockers += readers_of_removed(graph, base)
    if decided.errors:
        raise ProjectErrors(tuple(decided.errors))
    return decided


def words_for(changes: Iterable[Change], wanted: Mapping[str, Category], who: str = "") -> tuple[Word, ...]:
    """A person's categories as words about these very changes.

    RequestError unless each names a directly changed model and says breaking, non-breaking or forward-only.
    """
    by_name = {change.name: change for change in changes}
    direct_names = [name for name, change in by_name.items() if change.change is ChangeKind.DIRECT]
    words = []
    for name, category in wanted.items():
        if category not in (Category.BREAKING, Category.NON_BREAKING, Category.FORWARD_ONLY):
            hint = "Choose `breaking`, `non-breaking` or `forward-only`."
            raise RequestError(f"`{category}` cannot be chosen for `{name}`.", hint=hint)
        if name not in direct_names:
            choices = ", ".join(f"`{n}`" for n in direct_names) or "none in this plan"
            raise RequestError(
                f"`{name}` is not directly changed here.", hint=f"Models that can be categorized: {choices}."
            )
        change = by_name[name]
        assert change.old is not None
        assert change.new is not None
        if category is Category.FORWARD_ONLY and (why := why_not(change.old.model, change.new.model)):
            raise RequestError(f"`{name}` cannot be forward-only: {why}.", hint="Choose another category.")
        words.append(Word(name, category, change.old.fingerprint.text, change.new.fingerprint.text, who))
    return tuple(words)


def _decide_model(
    graph: Graph, name: str, base: Mapping[str, Snapshot], words: list[Word], base_name: str, decided: Decisions
) -> None:
    model, old, parents = graph.models[name], base.get(name), graph.parents[name]
    if old is not None and _is_as_before(graph, model, old, base, decided):
        decided.snapshots[name], decided.effects[name] = old, UNTOUCHED
        return
    began = _began(graph, model)
    above = {p: decided.snapshots[p].as_parent for p in parents}
    after = _shape(model, above)
    if old is not None:
        after = _by_the_same_keys(old, model, above, after, {p: decided.seen(p) for p in parents}, began)
    fingerprint = fingerprint_of(model, after, {p: decided.snapshots[p].fingerprint for p in parents}, began)
    found = unresolved(graph, model, after, decided.effects)
    decided.blockers += [found] if isinstance(found, Blocker) else []
    decided.errors += [found] if isinstance(found, ProjectError) else []
    if old is not None and fingerprint == old.fingerprint and not is_edited(old.model, model):
        decided.snapshots[name], decided.effects[name] = old, UNTOUCHED
        return
    meaning = meaning_of(model, after, {p: decided.snapshots[p].seen for p in parents}, began)
    if old is not None and _emptied(meaning) == old.meaning:
        meaning = _emptied(meaning)  # its table was left empty once, and still holds no more than since then
    versions = {p: decided.snapshots[p].version for p in parents if not model.kind.is_stored}
    if decided.fills_part(model, parents, base):
        versions["from"] = decided.since
    fresh = Snapshot(model, fingerprint, "", _columns(model, after), meaning=meaning)
    fresh = at_version(fresh, _version(fresh, versions, decided), decided.naming)
    if old is None:
        fresh = _left_empty(fresh, versions, decided)
        decided.snapshots[name], decided.effects[name] = fresh, EVERY
        reason = f"`{name}` is not in `{base_name}` yet."
        change = Change(name, ChangeKind.ADDED, None, "added", reason, UNTOUCHED, None, fresh, model.kind.is_stored)
        decided.add(replace(change, diff=_diff(None, model)), parents, base)
        return
    read = {p: base[p].as_parent if p in base else Parent(None) for p in old.model.depends_on}
    before = _shape(old.model, _as_keyed(read, old))
    told = heard(fresh, after, old, decided.told_by(parents, base), decided.loaded, began)
    decided.comparisons += told.questions
    sides = Side(old.model, before, old.raw), Side(model, after, told.seen)
    calm = _calm_but_for(old, parents, base, decided, began)
    change = _decide_change(old, fresh, sides, told.spared, words, base_name, decided, calm)
    laid_out = change.rule == "layout-changed" and model.kind is not Kind.SEED
    same = ALWAYS if laid_out else told.same
    # a table that a word or a comparison kept does not hold what its query would return: nothing is copied from it
    sound = not old.forced or (laid_out and old.is_mixed)
    copied = change.recomputed and sound and change.category is not Category.FORWARD_ONLY
    decided.add(replace(change, copies=same if copied else ()), parents, base)


def _by_the_same_keys(
    old: Snapshot, model: Model, above: Mapping[str, Parent], after: Shape | None, seen: Mapping[str, Seen], began: str
) -> Shape | None:
    """The shape of a model that means what it meant, by the keys that it was judged by then: its table is not another
    one because an audit of what it reads came or went. Computed anew, it is judged by those of today."""
    if after is None or old.meaning is None or after.relies == old.meaning.relies:
        return after
    before = _shape(model, _as_keyed(above, old))
    return before if before and meaning_of(model, before, seen, began).seen == old.raw else after


def _as_keyed(parents: Mapping[str, Parent], old: Snapshot) -> dict[str, Parent]:
    """What a model reads, with the keys that it was judged by; those that hold no longer are passed on to nobody."""
    relied = dict(old.meaning.relies) if old.meaning else {}
    return {
        name: replace(
            parent,
            keys=tuple(key for key in parent.keys if key in relied.get(name, ())),
            audited=relied.get(name, ()),
        )
        for name, parent in parents.items()
    }


def _calm_but_for(
    old: Snapshot, parents: Iterable[str], base: Mapping[str, Snapshot], decided: Decisions, began: str
) -> tuple[str, ...]:
    """The models with forward-only changes that a model reads, if no other change would touch it."""
    going = tuple(name for name in parents if name in decided.going and name in base)
    if not going:
        return ()
    now = {p: base[p] if p in going else decided.snapshots[p] for p in parents}
    shape = _shape(old.model, {p: each.as_parent for p, each in now.items()})
    seen = {p: each.seen if p in going else decided.seen(p) for p, each in now.items()}
    return going if meaning_of(old.model, shape, seen, began).seen == old.raw else ()


def _began(graph: Graph, model: Model) -> str:
    """Since when the table of a model is filled by time: its own start, else the earliest of what it reads."""
    if not model.kind.is_incremental:
        return ""
    if model.start_moves or model.start:
        return model.start_text if model.start_moves else str(model.start)
    above = [graph.models[name] for name in graph.upstream([model.name])]
    moving = sorted({each.start_text for each in above if each.start_moves})
    fixed = min((each.start for each in above if each.start and not each.start_moves), default=None)
    return " ".join([*moving, *([str(fixed)] if fixed else [])])


def _version(fresh: Snapshot, versions: dict[str, str], decided: Decisions) -> str:
    """The version of a model that is built anew; never that of a table that drifted."""
    model, meaning, again = fresh.model, fresh.meaning, 0
    assert meaning is not None
    if model.kind.has_view and (placement := decided.naming.placement(model.name)):
        versions = {**versions, "placed": placement}
    version = version_of(model, meaning, versions)
    while model.kind.is_stored and decided.naming.table(model.name, version) in decided.loaded.drifted:
        again += 1
        version = version_of(model, meaning, versions | {"again": str(again)})
    return version


def _is_as_before(graph: Graph, model: Model, old: Snapshot, base: Mapping[str, Snapshot], decided: Decisions) -> bool:
    """True when neither the model nor anything it reads changed; its query need not be looked at, so that a plan
    takes as long as its change is large, not as its project."""
    read = {p for p in old.model.depends_on if p in base}
    same = read == set(graph.parents[model.name]) and all(decided.snapshots[p] is base[p] for p in read)
    return same and not is_edited(old.model, model) and (_has_own_start(model) or _starts_stay(graph, model, base))


def _has_own_start(model: Model) -> bool:
    return bool(model.start or model.start_moves or not model.kind.is_incremental)


def _starts_stay(graph: Graph, model: Model, base: Mapping[str, Snapshot]) -> bool:
    """True when nothing above a model starts elsewhere now: it may take its own first day from any of them."""
    above = graph.upstream([model.name])
    return all(
        name in base and (one.start_text or one.start) == (base[name].model.start_text or base[name].model.start)
        for name, one in ((name, graph.models[name]) for name in above)
    )


def _decide_change(
    old: Snapshot,
    fresh: Snapshot,
    sides: tuple[Side, Side],
    spared: tuple[Comparison, ...],
    words: list[Word],
    base_name: str,
    decided: Decisions,
    calm: tuple[str, ...] = (),
) -> Change:
    name, model = fresh.name, fresh.model
    edited = is_edited(old.model, model)
    found, word = _judged(old, fresh, sides, spared, words, decided, calm)
    if word is not None and word.category is Category.BREAKING:
        fresh = _made_anew(fresh, (word.old, word.new), decided)
    if found.category is Category.FORWARD_ONLY:
        return replace(_go_forward(old, fresh, found, edited, base_name, decided), word=word)
    rebuilt = found.category in REBUILT
    # What holds no rows is never rebuilt but re-made, so that it reads its parents' newest tables.
    keeps = not rebuilt if model.kind.is_stored else fresh.version == old.version
    differs = sides[1].seen != fresh.raw
    drifts = not rebuilt and differs
    whole = fresh
    fresh = _left_empty(fresh, {}, decided) if rebuilt else fresh
    where = old if keeps else fresh
    snapshot = replace(fresh, version=where.version, stored=where.stored, forced=keeps and (drifts or old.forced))
    if keeps or found.rule == "layout-changed":
        snapshot = still_mixed(snapshot, old)
    decided.snapshots[name] = snapshot
    if word is not None and word.category is Category.NON_BREAKING:
        decided.told[name] = _hushed(old.seen, snapshot.seen)
    elif drifts:
        decided.told[name] = old.seen
    elif differs and word is None and fresh is whole:
        decided.told[name] = _as_told(snapshot, sides[1].seen)
    if fresh is not whole and name not in decided.told:
        # what a reader does not feel of the edit it does not feel of the empty table either: it keeps its rows
        decided.told[name] = _as_told(whole, sides[1].seen) if differs and word is None else whole.seen
    decided.effects[name] = difference(old.seen, decided.seen(name))
    change = _changed(old, snapshot, found, edited, recomputed=rebuilt and model.kind.is_stored)
    return replace(change, shares=base_name if keeps else None, word=word)


def _changed(old: Snapshot, new: Snapshot, found: Verdict, edited: bool, *, recomputed: bool) -> Change:
    return Change(
        name=new.name,
        change=_change_kind(found, edited),
        category=found.category,
        rule=found.rule,
        reason=found.reason,
        columns=found.columns,
        old=old,
        new=new,
        recomputed=recomputed,
        diff=_diff(old.model, new.model) if edited else "",
    )


def _judged(
    old: Snapshot,
    fresh: Snapshot,
    sides: tuple[Side, Side],
    spared: tuple[Comparison, ...],
    words: list[Word],
    decided: Decisions,
    calm: tuple[str, ...],
) -> tuple[Verdict, Word | None]:
    """What becomes of a model, and the person's word that said so, if one did: it outweighs every rule."""
    edited = is_edited(old.model, fresh.model)
    alike = {each.model for each in spared}
    effects = {p: decided.effects[p] for p in fresh.model.depends_on if p in decided.effects and p not in alike}
    found = verdict(*sides, effects)
    if old.is_mixed and found.category in REBUILT and found.rule != "layout-changed":
        found = verdict(replace(sides[0], seen=old.seen), sides[1], effects)  # what is rebuilt loses the kept rows
    if spared and found.category is Category.INDIRECT_NON_BREAKING:
        found = by_data(spared)
    about = (old.fingerprint.text, fresh.fingerprint.text)
    word = next((word for word in reversed(words) if edited and (word.old, word.new) == about), None)
    if word is not None:
        decided.used_words.append(word)
        return _overruled(found, word), word
    if found.category in REBUILT:
        found = ruled(found, old.model, fresh.model, edited, () if edited else calm, decided.forward.every)
    return found, None


def _go_forward(
    old: Snapshot, fresh: Snapshot, found: Verdict, edited: bool, base_name: str, decided: Decisions
) -> Change:
    """A change that keeps the rows there are: of a table in one that takes them over, of a view in those below it."""
    name, model, asked = fresh.name, fresh.model, decided.forward
    is_kept = model.kind.is_stored and model.kind is not Kind.SEED
    snapshot, forward = fresh, None
    if is_kept:
        over = {"forward-only": old.version} | ({"since": asked.since.isoformat()} if asked.since else {})
        assert fresh.meaning is not None
        # one with an effective date is built where it is reviewed, and what prod is to get has the same version
        version = version_of(model, fresh.meaning, over) if asked.since else _version(fresh, over, decided)
        snapshot = at_version(mixed(old, fresh, version), version, decided.naming)
        forward = going_on(old, snapshot, decided.loaded, asked)
        _look_at_columns(old, snapshot, forward, decided)
    decided.going.add(name)
    decided.snapshots[name] = snapshot
    decided.effects[name] = difference(old.seen, snapshot.seen)
    anew = not is_kept or asked.since is not None
    change = _changed(old, snapshot, found, edited, recomputed=model.kind.is_stored and anew)
    return replace(change, shares=None if anew else base_name, forward=forward)


def _look_at_columns(old: Snapshot, new: Snapshot, forward: Forward, decided: Decisions) -> None:
    """Block or warn of columns that go or come, as far as the queries tell; the tables themselves are asked later."""
    if old.columns is None or new.columns is None or not forward.rows:
        return
    for finding in schema_findings(old.columns, new.columns, forward.destructive, forward.additive):
        found = blocker_of(new.model, finding)
        decided.blockers += [found] if finding.policy == "error" else []
        decided.warnings += [found] if finding.policy == "warn" else []


def _as_told(snapshot: Snapshot, told: Seen) -> Seen:
    """What readers of a snapshot see when its rows are told to be these."""
    assert snapshot.meaning is not None
    return replace(
        snapshot,
        meaning=replace(snapshot.meaning, rows=told.rows, columns=tuple(told.columns.items()), order=told.order),
    ).seen


def _hushed(old: Seen, new: Seen) -> Seen:
    """What readers are told of a model whose change is called non-breaking: what was there is as it was."""
    return Seen(old.rows, {name: old.columns.get(name, each) for name, each in new.columns.items()}, old.order)


def _made_anew(fresh: Snapshot, about: tuple[str, str], decided: Decisions) -> Snapshot:
    """The snapshot with rows that are nobody else's, because a person says that they are."""
    assert fresh.meaning is not None
    meaning = replace(fresh.meaning, rows=digest(fresh.meaning.rows, "by word", *about)[:24])
    anew = replace(fresh, meaning=meaning)
    return at_version(anew, _version(anew, {}, decided), decided.naming)


def _left_empty(fresh: Snapshot, versions: dict[str, str], decided: Decisions) -> Snapshot:
    """The snapshot of a table that is to be left empty, where that was asked and no environment shows the whole one."""
    if not decided.empty or not fresh.kind.is_stored or fresh.meaning is None or fresh.table in decided.loaded.complete:
        return fresh
    emptied = replace(fresh, meaning=_emptied(fresh.meaning))
    return at_version(emptied, _version(emptied, versions, decided), decided.naming)


def _emptied(meaning: Meaning) -> Meaning:
    return replace(meaning, rows=digest(meaning.rows, "left empty")[:24])


def _overruled(verdict: Verdict, word: Word) -> Verdict:
    who = f"@{word.who}" if word.who else "Somebody"
    said = str(word.category).replace("_", "-")
    reason = f"{who} categorized it as {said}; the rule `{verdict.rule}` had said: {verdict.reason}"
    columns = EVERY if word.category is Category.BREAKING else verdict.columns
    return Verdict(word.category, "categorized", reason, columns)


def _change_kind(verdict: Verdict, edited: bool) -> ChangeKind:
    if verdict.category is Category.METADATA:
        return ChangeKind.METADATA
    return ChangeKind.DIRECT if edited else ChangeKind.INDIRECT


def _shape(model: Model, parents: Mapping[str, Parent]) -> Shape | None:
    if model.python:
        return code_shape(model.python.digest, [column.name for column in model.columns], parents)
    return model_shape(model, parents) if model.sql else None


def _columns(model: Model, shape: Shape | None) -> tuple[str, ...] | None:
    kept = tuple(column.name for column in model.kept_columns)
    if shape is not None and shape.columns is not None:
        return (*in_order(model, shape.columns), *kept)
    if model.columns:
        return (*(column.name for column in model.columns), *kept)
    return model.seed.header if model.seed else None


def _table(snapshot: Snapshot | None) -> str:
    return snapshot.table if snapshot else ""


def _removal(old: Snapshot) -> Change:
    reason = f"`{old.name}` is no longer in the project."
    return Change(
        old.name, ChangeKind.REMOVED, None, "removed", reason, EVERY, old, None, False, diff=_diff(old.model, None)
    )


def _diff(old: Model | None, new: Model | None) -> str:
    before = old.source.strip().splitlines() if old else []
    after = new.source.strip().splitlines() if new else []
    path = (new or old).path if (new or old) else ""  # type: ignore[union-attr]  # one of the two is there
    lines = difflib.unified_diff(before, after, f"a/{path}", f"b/{path}", lineterm="", n=3)
    return "\n".join(lines)
