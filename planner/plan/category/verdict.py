"""The verdict of the rules on one model: by its own edit, by its parents, and by what its tables hold."""

from dataclasses import replace

from mergeplan.planner.plan.category.categorize import Side, Verdict, is_reordered, reach_verdict
from mergeplan.planner.plan.category.decision import Candidate
from mergeplan.planner.plan.category.parent_effects import OverParents
from mergeplan.planner.plan.category.reasons import Causes
from mergeplan.planner.plan.change import REBUILT, Category, Change, ChangeKind
from mergeplan.planner.plan.diffs import source_diff
from mergeplan.planner.plan.forward_only import apply_forward_only
from mergeplan.planner.plan.new_table import as_keyed, shape_of, table_time
from mergeplan.planner.semantics.parent import Parent
from mergeplan.planner.snapshot.meaning import meaning_of
from mergeplan.planner.snapshot.snapshot import Snapshot


def verdict_by_rule(candidate: Candidate, seen_parents: OverParents) -> Verdict:
    old, model, base = candidate.old, candidate.model, candidate.inputs.base
    # its old parents are those of the base: one may be gone, or be another thing now
    read = {name: base[name].as_parent if name in base else Parent(None) for name in old.model.depends_on}
    # an override or a comparison that kept the table left rows in it that its query does not return
    shapes = candidate.inputs.shapes
    keyed = as_keyed(read, old, old.model.sql, shapes)
    old_side = Side(
        old.model, shape_of(old.model, keyed, shapes), old.raw, not old.forced or old.is_mixed, _old_time(candidate)
    )
    new_side = Side(model, candidate.analysis.shape, seen_parents.rows, time=candidate.analysis.began)
    causes = _find_causes(candidate, seen_parents)
    between = build_middle_side(candidate, seen_parents) if candidate.edited and causes.effects else None
    result = reach_verdict(old_side, new_side, causes, between)
    if old.is_mixed and result.category in REBUILT and result.rule != "layout-changed":
        # Judged by its query it changed little, but the rebuilt table loses the rows that a forward-only change had
        # kept, and its readers lose them too.
        losing = replace(causes, loses_kept_rows=True)
        result = reach_verdict(replace(old_side, seen=old.visible_digest), new_side, losing, between or old_side)
    if seen_parents.unchanged and result.category is Category.INDIRECT_NON_BREAKING:
        facts = []
        for comparison in seen_parents.unchanged:
            columns = ", ".join(f"`{column}`" for column in comparison.columns)
            facts.append(f"`{comparison.model}` holds the same rows as before" + (f" in {columns}" if columns else ""))
        return Verdict(Category.INDIRECT_NON_BREAKING, "same-data", f"Computed again, {' and '.join(facts)}.")
    return result


def verdict_of_settled(candidate: Candidate) -> Verdict:
    rows = candidate.old.raw
    causes = _find_causes(candidate, OverParents(rows))
    return reach_verdict(
        Side(candidate.old.model, None, rows), Side(candidate.model, candidate.analysis.shape, rows), causes
    )


def _find_causes(candidate: Candidate, seen_parents: OverParents) -> Causes:
    """Return the changes in what the model read before; parents that it reads only since its edit are left out."""
    base, old, model = candidate.inputs.base, candidate.old, candidate.model
    # a recomputed parent with the same rows has no effect, whatever its own edit was
    unchanged = {comparison.model for comparison in seen_parents.unchanged}
    read = old.model.depends_on
    parents = {name: p for name, p in candidate.parents.items() if name not in unchanged and name in read}
    meaning = candidate.fresh.meaning if model.kind.is_stored else None
    return Causes(
        effects={name: parent.effect for name, parent in parents.items()},
        added=frozenset(name for name in parents if name not in base),
        reordered=frozenset(
            n for n, p in parents.items() if n in base and is_reordered(base[n].visible_digest, p.visible)
        ),
        overridden=frozenset(
            n for n, p in parents.items() if p.override is not None and p.override.category is Category.NON_BREAKING
        ),
        moved_start=model.kind.is_incremental
        and model.name in candidate.inputs.below_moved_starts
        and candidate.analysis.began != _old_time(candidate),
        volatile=(meaning.volatile if meaning else frozenset()) & frozenset(old.columns or ()),
        volatile_rows=meaning is not None and meaning.volatile_rows,
    )


def _old_time(candidate: Candidate) -> str:
    return table_time(candidate.inputs.base_graph, candidate.old.model)


def build_middle_side(candidate: Candidate, seen_parents: OverParents) -> Side:
    """Return the old text over the new parents, which separates the effect of the parents from that of the edit."""
    old, base, parents = candidate.old, candidate.inputs.base, candidate.parents
    unchanged = {comparison.model: comparison.old.visible_digest for comparison in seen_parents.unchanged}
    read = {name: base[name].as_parent if name in base else Parent(None) for name in old.model.depends_on}
    read |= {name: parents[name].snapshot.as_parent for name in read if name in parents}
    rows = {name: base[name].visible_digest for name in old.model.depends_on if name in base}
    rows |= {name: parents[name].visible for name in old.model.depends_on if name in parents} | unchanged
    shape = shape_of(old.model, read, candidate.inputs.shapes)
    time = candidate.analysis.began if old.kind.is_incremental else _old_time(candidate)
    return Side(old.model, shape, meaning_of(old.model, shape, rows, time).table_digest, time=time)


def forward_only_verdict(candidate: Candidate, rule_verdict: Verdict) -> Verdict:
    """Return the verdict as a forward-only one if the rules would rebuild a table whose rows are to be kept."""
    if rule_verdict.category not in REBUILT:
        return rule_verdict
    forward_only_parents = () if candidate.edited else _forward_only_parents(candidate)
    old, new = candidate.old.model, candidate.model
    return apply_forward_only(rule_verdict, old, new, candidate.edited, forward_only_parents, candidate.inputs.forward)


def build_change(candidate: Candidate, new: Snapshot, rule_verdict: Verdict, *, is_recomputed: bool) -> Change:
    edited, kind = candidate.edited, ChangeKind.INDIRECT
    if rule_verdict.category is Category.METADATA:
        kind = ChangeKind.METADATA
    elif edited:
        kind = ChangeKind.DIRECT
    return Change(
        name=new.name,
        change=kind,
        category=rule_verdict.category,
        rule=rule_verdict.rule,
        reason=rule_verdict.reason,
        columns=rule_verdict.columns,
        old=candidate.old,
        new=new,
        recomputed=is_recomputed,
        diff=source_diff(candidate.old.model, new.model) if edited else "",
    )


def _forward_only_parents(candidate: Candidate) -> tuple[str, ...]:
    """Return the parents with forward-only changes if the model would mean the same without these changes."""
    old, base, parents = candidate.old, candidate.inputs.base, candidate.parents
    going = tuple(name for name, parent in parents.items() if parent.is_forward_only and name in base)
    if not going:
        return ()
    snapshots = {name: base[name] if name in going else parent.snapshot for name, parent in parents.items()}
    above = {name: snapshot.as_parent for name, snapshot in snapshots.items()}
    shape = shape_of(old.model, above, candidate.inputs.shapes)
    digests = {name: base[name].visible_digest if name in going else parent.visible for name, parent in parents.items()}
    return going if meaning_of(old.model, shape, digests, candidate.analysis.began).table_digest == old.raw else ()
