"""Decisions from models to changes: each model is decided by its own edit and by the decisions about its parents.

`decide_all_models` walks the graph, parents first. `decide_model` decides one model. Its steps are separate files:
`settled` (a model that is known to mean the same as before), `new_table` (the model if it were built again), `verdict`
(the rules), `override` (a person's category), `keep_rows` (forward-only), `parent_effects` (what a model sees of its
parents and shows to its readers).
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from mergeplan.planner.errors import ProjectError, ProjectErrors
from mergeplan.planner.fingerprint import digest, encode_text
from mergeplan.planner.intervals import Timeline, build_timeline, subtract_intervals
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan import new_table
from mergeplan.planner.plan.blockers import find_column_errors, find_column_problem, readers_of_removed
from mergeplan.planner.plan.category import override as overrides
from mergeplan.planner.plan.category import verdict as verdicts
from mergeplan.planner.plan.category.categorize import EVERY, UNTOUCHED, Verdict, compare_digests, is_edited
from mergeplan.planner.plan.category.decision import Analysis, Candidate, Decision, Decisions, Inputs
from mergeplan.planner.plan.category.later_form import verdict_by_forms
from mergeplan.planner.plan.category.parent_effects import OverParents, digest_for_readers, over_parents
from mergeplan.planner.plan.category.self_reading import follow_old_snapshot, keep_old_meaning
from mergeplan.planner.plan.category.settled import settle
from mergeplan.planner.plan.change import REBUILT, Category, Change, ChangeKind, Columns, Override
from mergeplan.planner.plan.diffs import source_diff
from mergeplan.planner.plan.forward_only import still_mixed
from mergeplan.planner.plan.keep_rows import keep_columns, keep_rows, release_columns
from mergeplan.planner.plan.restatement import interval_in_window
from mergeplan.planner.semantics.shape import Reads
from mergeplan.planner.semantics.traits import traits_of
from mergeplan.planner.snapshot.snapshot import Snapshot

REFUTED_RULE = "witness-disagrees"
BACK = "It goes back to what it was before a change that counted as breaking, so its rows count as changed again."
ALWAYS = build_timeline(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


def decide_all_models(inputs: Inputs) -> Decisions:
    """Decide every model against the base; raise ProjectErrors if a query reads a column that does not exist."""
    graph, base = inputs.graph, inputs.base
    decision_by_model: dict[str, Decision] = {}
    to_decide = inputs.names_to_decide
    for name in graph.order:
        if name not in to_decide:
            decision_by_model[name] = Decision(base[name])
            continue
        decision_by_model[name] = decide_model(
            inputs, graph.models[name], {parent: decision_by_model[parent] for parent in graph.parents[name]}
        )
    removed = tuple(_build_removal(base[name]) for name in sorted(base.keys() - graph.models.keys()))
    decision_by_model = {name: add_lost_readers(inputs, decision) for name, decision in decision_by_model.items()}
    decisions = Decisions(decision_by_model, removed, tuple(readers_of_removed(graph, base)))
    if errors := (*decisions.errors, *find_column_errors(decisions.changes)):
        raise ProjectErrors(errors)  # all of them, so that a person fixes them at once
    return decisions


def decide_model(inputs: Inputs, model: Model, parents: Mapping[str, Decision]) -> Decision:
    old = inputs.base.get(model.name)
    is_restated = old is not None and overrides.find_restatement(inputs, old) is not None
    if old is not None and not is_restated and not _takes_columns_by_place(inputs, model, parents):
        # no query is read, so that the time of a plan grows with its change, not with the project
        read = {name for name in old.model.depends_on if name in inputs.base}
        # the same snapshots, and not equal ones: a parent that was decided again must be compared
        has_same_parents = read == parents.keys() and all(parents[name].snapshot is inputs.base[name] for name in read)
        if (
            has_same_parents
            and not is_edited(old.model, model)
            and (new_table.has_own_start(model) or model.name not in inputs.below_moved_starts)
        ):
            return Decision(old)
        settled = settle(inputs, model, old, parents)
        if settled is not None:
            is_alike = settled.fresh.fingerprint == settled.old.fingerprint
            if is_alike and _keep_tables(settled.inputs, settled.parents):
                return Decision(settled.old)
            seen_rows, verdict = OverParents(settled.old.raw), verdicts.verdict_of_settled(settled)
            if reason := find_refutation(settled, seen_rows):
                return _decide_refuted(settled, seen_rows, reason)
            return _complete_change(settled, seen_rows, _rebuilt_or_kept(settled, seen_rows, verdict, None), None)
    followed = follow_old_snapshot(inputs, old) if old is not None else None
    analysis = new_table.analyze_query(inputs, model, parents)
    effects = {name: parent.effect for name, parent in parents.items()}
    parent_columns = {column for parent in parents.values() for column in parent.snapshot.as_parent.columns or ()}
    problem = find_column_problem(inputs.graph, model, analysis.shape, effects, parent_columns)
    if isinstance(problem, ProjectError) and _is_lost_by_error(inputs, analysis, parents):
        problem = None
    decision = _decide_by_analysis(inputs, model, followed, analysis, parents).add_problem(problem)
    return decision if old is None or followed is old else keep_old_meaning(decision, old)


def _is_lost_by_error(inputs: Inputs, analysis: Analysis, parents: Mapping[str, Decision]) -> bool:
    """Return True if a column is missing because the query of a parent is wrong, which is reported there."""
    column = analysis.shape.unresolved if analysis.shape else None
    wrong = [inputs.base[name] for name, parent in parents.items() if parent.errors and name in inputs.base]
    return any(column in (old.columns or ()) for old in wrong)


def _decide_by_analysis(
    inputs: Inputs, model: Model, old: Snapshot | None, analysis: Analysis, parents: Mapping[str, Decision]
) -> Decision:
    edited = old is not None and is_edited(old.model, model)
    is_alike = old is not None and analysis.fingerprint == old.fingerprint and not edited
    if old is not None and is_alike and _keep_tables(inputs, parents):
        if restatement := overrides.find_restatement(inputs, old):
            return _decide_restated(Candidate(inputs, old, old, analysis, parents, edited), restatement)
        # the parents' edit touches no part of the fingerprint
        return Decision(inputs.base[model.name])
    fresh = new_table.build_new_snapshot(inputs, model, analysis, parents)
    if old is None:
        return _decide_addition(inputs, fresh, parents)
    return _decide_change(Candidate(inputs, old, fresh, analysis, parents, edited))


def _decide_change(candidate: Candidate) -> Decision:
    """Decide a changed model by the rules, then by a person, then by forward-only requests; then choose its table."""
    seen_rows = over_parents(candidate)
    override = overrides.override_of(candidate, candidate.inputs.overrides)
    if override is None and (reason := find_refutation(candidate, seen_rows)):
        return _decide_refuted(candidate, seen_rows, reason)
    by_rule = verdict_by_forms(candidate, seen_rows, verdicts.verdict_by_rule(candidate, seen_rows))
    if candidate.old.marks[new_table.count_marks(candidate.old, candidate.model) :]:
        by_rule = Verdict(Category.BREAKING, "categorized", BACK, EVERY)
    restatement = None if candidate.edited else overrides.find_restatement(candidate.inputs, candidate.old)
    if restatement and by_rule.category not in REBUILT:
        return _decide_restated(candidate, restatement)
    # A person overrules every rule, including a model's or a plan's request for forward-only.
    if override:
        verdict = overrides.apply_override(by_rule, override)
    else:
        verdict = release_columns(candidate, verdicts.forward_only_verdict(candidate, by_rule))
    if override and overrides.insists_on_breaking(by_rule, override):
        candidate = replace(candidate, fresh=new_table.assign_own_rows(candidate, override))
    if verdict.category is Category.FORWARD_ONLY:
        decision = keep_rows(candidate, verdict)
    else:
        decision = _rebuilt_or_kept(candidate, seen_rows, verdict, override)
    return _complete_change(candidate, seen_rows, decision, override)


def _decide_refuted(candidate: Candidate, seen_rows: OverParents, reason: str) -> Decision:
    """Decide a model whose verdict Spark's analyzer refutes: it is recomputed, and all its rows count as changed."""
    candidate = replace(candidate, fresh=new_table.assign_refuted_rows(candidate, claim_of(candidate, seen_rows)))
    category = Category.BREAKING if candidate.edited else Category.INDIRECT_BREAKING
    verdict = verdicts.forward_only_verdict(candidate, Verdict(category, REFUTED_RULE, reason, EVERY))
    seen_rows = OverParents(candidate.fresh.raw)
    if verdict.category is Category.FORWARD_ONLY:
        return _complete_change(candidate, seen_rows, keep_rows(candidate, verdict), None)
    return _complete_change(candidate, seen_rows, _rebuilt_or_kept(candidate, seen_rows, verdict, None), None)


def _decide_restated(candidate: Candidate, override: Override) -> Decision:
    """Decide a model whose rows a person wants computed again: its new table takes the other days from the old one."""
    candidate = replace(candidate, fresh=new_table.assign_restated_rows(candidate, override))
    seen_rows = OverParents(candidate.fresh.raw)
    decision = _rebuilt_or_kept(candidate, seen_rows, overrides.build_restated_verdict(override), override)
    decision = _complete_change(candidate, seen_rows, decision, override)
    assert decision.change is not None
    return replace(decision, change=replace(decision.change, change=ChangeKind.DIRECT))


def _complete_change(
    candidate: Candidate, seen: OverParents, decision: Decision, override: Override | None
) -> Decision:
    inputs, old = candidate.inputs, candidate.old
    assert decision.change is not None
    change = replace(
        decision.change,
        override=override,
        copies=_time_to_copy(replace(decision.change, override=override), old, seen),
        preview=decision.change.shares is None and new_table.holds_part(inputs, candidate.model, candidate.parents),
        effect=decision.effect,
        unchanged=tuple((comparison.model, comparison.columns) for comparison in seen.unchanged),
        claim=claim_of(candidate, seen),
    )
    return replace(decision, change=change, comparisons=seen.unanswered)


def _rebuilt_or_kept(
    candidate: Candidate, seen_parents: OverParents, rule_verdict: Verdict, override: Override | None
) -> Decision:
    inputs, old, model = candidate.inputs, candidate.old, candidate.model
    rebuilt = rule_verdict.category in REBUILT
    whole = candidate.fresh
    table = new_table.empty_if_requested(inputs, whole, candidate.parents) if rebuilt else whole
    # A model without a table is never rebuilt but created again, so that it reads its parents' newest tables.
    keeps = not rebuilt if model.kind.is_stored else table.version == old.version
    # Its query over its parents as they are may mean something else than over what they report: an override or a
    # comparison then keeps its table. From here on the table holds rows that its version does not say; it is `forced`,
    # and it is never taken for the one that the version names.
    drifts = not rebuilt and seen_parents.rows != whole.raw
    place = old if keeps else table
    snapshot = replace(table, version=place.version, stored=place.stored, forced=keeps and (drifts or old.forced))
    if keeps or rule_verdict.rule == "layout-changed":
        # rows that an earlier forward-only change kept stay in the table, also when they are copied to another layout
        snapshot = still_mixed(snapshot, old, keeps_table=keeps)
    if snapshot.is_mixed and not keeps:
        snapshot = keep_columns(snapshot, old, is_copy=True)
    decision = Decision(
        snapshot, reported=digest_for_readers(old, whole, snapshot, seen_parents.rows, rule_verdict, override)
    )
    change = verdicts.build_change(candidate, snapshot, rule_verdict, is_recomputed=rebuilt and model.kind.is_stored)
    return replace(
        decision,
        effect=compare_digests(old.visible_digest, decision.visible),
        change=replace(change, shares=inputs.compared.name if keeps else None),
    )


def _time_to_copy(change: Change, old: Snapshot, seen_parents: OverParents) -> Timeline:
    laid_out = change.rule == "layout-changed" and not change.kind.is_seed
    if change.category is Category.FORWARD_ONLY:
        # Days before an effective date stay those of the old table, also where a restatement took them from the new.
        return change.forward.rows if change.recomputed and change.forward and change.kind.is_by_time else ()
    if not change.recomputed:
        return ()
    if change.override and change.override.restates:
        days, by_time = change.override.restates, change.kind.is_by_time
        return subtract_intervals(ALWAYS, interval_in_window(old.model, days)) if by_time else ()
    # what a person or Spark's analyzer takes for another query has none of the old rows, whatever the rules say
    if change.new is not None and change.new.marks != old.marks:
        return ()
    # A table that an override or a comparison kept does not hold what its query would return: nothing is copied from
    # it. Rows that a forward-only change kept are meant to stay if only the layout changes.
    if old.forced and not (laid_out and old.is_mixed):
        return ()
    return ALWAYS if laid_out else seen_parents.same


def _decide_addition(inputs: Inputs, fresh: Snapshot, parents: Mapping[str, Decision]) -> Decision:
    adoption = inputs.adopted.get(fresh.name)
    snapshot = (
        new_table.adopt_rows(inputs, fresh, adoption)
        if adoption
        else new_table.empty_if_requested(inputs, fresh, parents)
    )
    reason = f"`{fresh.name}` is not in `{inputs.compared.name}` yet."
    change = Change(
        name=fresh.name,
        change=ChangeKind.ADDED,
        category=None,
        rule="adopted" if adoption else "added",
        reason=f"`{adoption.table}` holds its rows." if adoption else reason,
        columns=UNTOUCHED,
        old=None,
        new=snapshot,
        recomputed=fresh.kind.is_stored and adoption is None,
        preview=new_table.holds_part(inputs, fresh.model, parents),
        diff=source_diff(None, fresh.model),
        adopts=adoption,
    )
    return Decision(snapshot, change, EVERY)


def as_removed(change: Change) -> Change:
    """Return the change as a plan shows it: a model without a file is removed, even if another model reads it.

    It does not count as a model that turned into an undeclared external table.
    """
    old, new = change.old, change.new
    if old is None or new is None or not (new.kind.is_external and not new.model.line and old.kind.has_view):
        return change
    return replace(_build_removal(old), reason=f"`{old.name}` is no longer in the project, and is still read.")


def _build_removal(old: Snapshot) -> Change:
    return Change(
        name=old.name,
        change=ChangeKind.REMOVED,
        category=None,
        rule="removed",
        reason=f"`{old.name}` is no longer in the project.",
        columns=EVERY,
        old=old,
        new=None,
        recomputed=False,
        diff=source_diff(old.model, None),
    )


def _takes_columns_by_place(inputs: Inputs, model: Model, parents: Mapping[str, Decision]) -> bool:
    """Return True if a query may name columns by position in a table whose column order differs from its query's.

    The state may hold a judgement of such a query by an older version, which went by the query's order.
    """
    tables = (parent.snapshot for parent in parents.values())
    return any(table.is_reordered for table in tables) and (
        not model.sql or traits_of(model.sql, inputs.shapes).unnamed
    )


def _keep_tables(inputs: Inputs, parents: Mapping[str, Decision]) -> bool:
    """Return True if each parent keeps its table and its rows.

    The fingerprint of a parent does not tell alone: the size of its batches is metadata there, and may decide rows.
    """
    old = inputs.base
    return all(
        name in old and parent.snapshot.version == old[name].version and parent.effect == UNTOUCHED
        for name, parent in parents.items()
    )


def claim_of(candidate: Candidate, seen_parents: OverParents) -> str:
    """Return the name of the rules' claim about a model: its old and new text, and the claims about its parents."""
    parents = [f"{name} {_effect_text(parent)}" for name, parent in sorted(candidate.parents.items())]
    unchanged = [f"{comparison.model} {comparison.columns}" for comparison in seen_parents.unchanged]
    old, new = candidate.old, candidate.fresh
    sides = (old.fingerprint.text, old.version, encode_text(old.model.settings), new.fingerprint.text)
    return digest("claim", new.name, *sides, "over", *parents, "same", *unchanged)[:32]


def find_refutation(candidate: Candidate, seen_parents: OverParents) -> str:
    """Return why Spark's analyzer disagrees with the rules about a model; '' if it agrees or did not check."""
    refuted = candidate.inputs.refuted
    return refuted.get(claim_of(candidate, seen_parents), "") if refuted else ""


def _effect_text(parent: Decision) -> str:
    effect: Columns = parent.effect
    columns = (sorted(effect.added), sorted(effect.altered), sorted(effect.removed))
    return f"{parent.snapshot.version} {columns} {effect.every} {effect.order}"


def add_lost_readers(inputs: Inputs, decision: Decision) -> Decision:
    change = decision.change
    if change is None or change.old is None or change.new is None:
        return decision
    kept_columns = {name.lower() for name in change.new.columns or ()}
    lost_columns = [name for name in change.old.columns or () if name.lower() not in kept_columns]
    if not (kept_columns and lost_columns):
        return decision
    graph, base = inputs.base_graph, inputs.base
    reads_by_model: dict[str, Reads] = {}
    for reader in graph.children.get(change.name, ()):
        parents = {name: base[name].as_parent for name in graph.parents[reader]}
        shape = new_table.shape_of(base[reader].model, parents, inputs.shapes)
        reads_by_model[reader] = shape.reads.get(change.name, Reads()) if shape else Reads(every=True)
    readers = tuple(
        (column, tuple(sorted(name for name, reads in reads_by_model.items() if _may_read(reads, column))))
        for column in lost_columns
    )
    return replace(decision, change=replace(change, lost_readers=readers))


def _may_read(reads: Reads, column: str) -> bool:
    return reads.every or column.lower() in reads.rows.union(*reads.outputs.values())
