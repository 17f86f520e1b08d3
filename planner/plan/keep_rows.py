"""Decisions about forward-only changes: the table keeps the rows of the one that it replaces."""

from dataclasses import replace
from datetime import datetime

from mergeplan.planner.fingerprint import digest
from mergeplan.planner.plan.category.categorize import Verdict, compare_digests
from mergeplan.planner.plan.category.decision import Candidate, Decision
from mergeplan.planner.plan.category.reasons import effect_verbs, sentence
from mergeplan.planner.plan.category.verdict import build_change
from mergeplan.planner.plan.change import Blocker, Category, Columns, Forward
from mergeplan.planner.plan.forward_only import blocker_of, build_mixed_snapshot, going_on, merge_types, schema_findings
from mergeplan.planner.plan.new_table import free_version, version_details
from mergeplan.planner.snapshot.snapshot import Meaning, Snapshot, assign_version, version_of

KEEPING = (Category.METADATA, Category.EQUIVALENT)


def keep_rows(candidate: Candidate, rule_verdict: Verdict) -> Decision:
    """Decide a change that keeps rows: those of the replaced table, or for a view those of the tables it reads."""
    inputs, old, fresh, since = candidate.inputs, candidate.old, candidate.fresh, _find_effective_date(candidate)
    takes_over = fresh.kind.is_stored and not fresh.kind.is_seed
    snapshot = _build_mixed_table(candidate) if takes_over else fresh
    forward = going_on(old, snapshot, inputs.loaded, inputs.forward) if takes_over else None
    moved = _columns_that_move(old, snapshot, forward) if forward else {}
    snapshot = keep_columns(snapshot, old) if forward and forward.rows else snapshot
    # Without an effective date the table holds all that it needs from its creation on, like one that prod shares.
    anew = not takes_over or since is not None
    change = build_change(candidate, snapshot, rule_verdict, is_recomputed=fresh.kind.is_stored and anew)
    return Decision(
        snapshot,
        replace(change, shares=None if anew else inputs.compared.name, forward=forward),
        compare_digests(old.visible_digest, snapshot.visible_digest),
        blockers=moved.get("error", ()),
        warnings=moved.get("warn", ()),
    )


def release_columns(candidate: Candidate, rule_verdict: Verdict) -> Verdict:
    """Return a forward-only verdict if the model no longer ignores a column that its table lacks or has in excess."""
    old, fresh = candidate.old, candidate.fresh
    if rule_verdict.category not in KEEPING or not (candidate.edited and old.is_mixed):
        return rule_verdict
    old_names, names = ({*(snapshot.columns or ())} for snapshot in (old, keep_columns(fresh, old)))
    if old_names == names:
        return rule_verdict
    columns = Columns(added=frozenset(names - old_names), removed=frozenset(old_names - names))
    reason = f"An earlier change of columns is no longer ignored: existing rows stay. {sentence(effect_verbs(columns))}"
    return Verdict(Category.FORWARD_ONLY, "no-longer-ignored", reason, columns)


def _find_effective_date(candidate: Candidate) -> datetime | None:
    # A table that is filled in order keeps all rows: it takes over those that prod has when it is merged.
    return None if candidate.fresh.kind.is_order_dependent else candidate.inputs.forward.since


def _build_mixed_table(candidate: Candidate) -> Snapshot:
    inputs, old, fresh, since = candidate.inputs, candidate.old, candidate.fresh, _find_effective_date(candidate)
    over = {"forward-only": old.version}
    assert fresh.meaning is not None
    if since is None:
        version = free_version(inputs, fresh, over)
    else:
        # It is built where it is reviewed, and what prod is to get has the same version, unless it was cut short there.
        over |= {"since": since.isoformat()} | version_details(inputs, fresh.model, candidate.parents)
        version = version_of(fresh.model, fresh.meaning, over)
    return assign_version(
        build_mixed_snapshot(old, fresh, version, recomputes=since is not None), version, inputs.naming
    )


def _columns_that_move(old: Snapshot, new: Snapshot, forward: Forward) -> dict[str, tuple[Blocker, ...]]:
    """Return blockers and warnings for columns that come or go by the queries; the tables are checked later."""
    if old.columns is None or new.columns is None or not forward.rows:
        return {}  # a table without rows takes any columns
    findings = schema_findings(old.columns, new.columns, forward.destructive, forward.additive)
    return {
        policy: tuple(blocker_of(new.model, finding) for finding in findings if finding.policy == policy)
        for policy in ("error", "warn")
    }


def keep_columns(snapshot: Snapshot, old: Snapshot, *, is_copy: bool = False) -> Snapshot:
    """Return the snapshot with the columns of a table that keeps another one's rows, as far as the policy says so.

    A column that no query returns any more holds NULL in new rows. It is no longer the column that the old query made,
    except in a copy of the old table.
    """
    meaning, policy = snapshot.meaning, snapshot.model.policy
    if old.columns is None or snapshot.columns is None or meaning is None:
        return snapshot
    query, old_columns = snapshot.columns, old.columns
    stay = tuple(name for name in query if name in old_columns or policy.on_additive_change != "ignore")
    gone = tuple(name for name in old_columns if name not in query and policy.on_destructive_change == "ignore")
    digests = {**old.visible_digest.columns, **dict(meaning.held)}
    changed = (name for name in (*stay, *gone) if name not in digests or (name in gone and not is_copy))
    digests |= {name: digest("forward-only", snapshot.version, "not returned", name)[:24] for name in changed}
    held_digests = tuple((name, digests[name]) for name in (*stay, *gone))
    types = _merge_types(old, meaning, (policy.on_destructive_change, policy.on_additive_change))
    return replace(snapshot, columns=(*stay, *gone), meaning=replace(meaning, held=held_digests, types=types))


def _merge_types(old: Snapshot, meaning: Meaning, policies: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    types, query_types = dict(old.meaning.types if old.meaning else ()), dict(meaning.types)
    if "ignore" not in policies:
        return meaning.types
    new_names = {*dict(meaning.columns)} - {*(old.columns or ())}
    table_types = {name: type_ for name, type_ in query_types.items() if name in new_names}
    for name, type_ in types.items():
        query_type = query_types.get(name)
        if query_type is not None or name not in dict(meaning.columns):
            table_types[name] = merge_types(type_, query_type, *policies) if query_type else type_
    return tuple(table_types.items())
