"""What a model sees of its parents, and what its own readers will see of it.

That is what tables hold, with two exceptions: a person said that an edit does not concern readers, or Spark compared a
new table with the old one and found the same rows. Then a reader sees the rows as they were.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from mergeplan.planner.intervals import Timeline
from mergeplan.planner.plan.category.categorize import UNTOUCHED, Verdict
from mergeplan.planner.plan.category.decision import Candidate, Decision
from mergeplan.planner.plan.change import REBUILT, Category, Override
from mergeplan.planner.plan.early_cutoff import Comparison, build_comparison, equal_time, open_questions
from mergeplan.planner.semantics.digests import TableDigest
from mergeplan.planner.snapshot.meaning import meaning_of
from mergeplan.planner.snapshot.snapshot import Snapshot


@dataclass(frozen=True)
class OverParents:
    """The rows of a model over its parents as it sees them.

    `unchanged` are the comparisons that made its parents look as before, `unanswered` those that Spark has still to
    make, `same` the time in which its rows are those of its old table.
    """

    rows: TableDigest
    unchanged: tuple[Comparison, ...] = ()
    unanswered: tuple[Comparison, ...] = ()
    same: Timeline = ()


def over_parents(candidate: Candidate) -> OverParents:
    """Return the rows by which a model is decided; a parent found to hold the same rows is seen as it was."""
    old, shape, began = candidate.old, candidate.analysis.shape, candidate.analysis.began
    loaded = candidate.inputs.loaded

    def rows(alike: Iterable[Comparison]) -> TableDigest:
        visible = {name: parent.visible for name, parent in candidate.parents.items()}
        unchanged = {question.model: question.old.visible_digest for question in alike}
        return meaning_of(candidate.model, shape, visible | unchanged, began).table_digest

    # Its snapshot was made over its parents' tables; these may report other rows, and it may keep that of an empty one.
    reports = any(parent.reported is not None for parent in candidate.parents.values())
    in_base = candidate.inputs.base.get(candidate.model.name)
    keeps_meaning = in_base is not None and candidate.fresh.meaning is in_base.meaning
    plain = rows(()) if reports or keeps_meaning else candidate.fresh.raw
    if loaded.contents is None or plain == old.raw:
        return OverParents(plain)  # nothing may be compared, or nothing need be
    questions = _list_comparisons(candidate)
    answers = [question.answer(loaded) for question in questions]
    if None not in answers and False in answers and rows(questions) == old.raw:
        # Some tables differ, so the model is computed; but in the periods in which all of them are alike its rows are
        # the old ones, which are copied.
        return OverParents(plain, same=equal_time(candidate.fresh, old, shape, questions, loaded))
    hoped = [question for question, answer in zip(questions, answers, strict=True) if answer is not False]
    if not hoped or rows(hoped) != old.raw:
        return OverParents(plain)  # even if all of these were equal, it would not mean the same as before
    if None in answers:
        return OverParents(plain, unanswered=open_questions(hoped, loaded))
    return OverParents(rows(hoped), unchanged=tuple(hoped))


def digest_for_readers(
    old: Snapshot,
    whole: Snapshot,
    snapshot: Snapshot,
    rows: TableDigest,
    rule_verdict: Verdict,
    override: Override | None,
) -> TableDigest | None:
    """Return what readers see of a decided model; None if that is what its snapshot holds.

    `whole` is the model at its own version, with all its rows. `snapshot` is what the plan makes of it: it may be left
    empty or keep its old table. `rows` is its meaning over its parents as it sees them.
    """
    if override is not None and override.category is Category.NON_BREAKING:
        return _as_it_was(old.visible_digest, snapshot.visible_digest)
    emptied = snapshot.raw != whole.raw
    if rows != whole.raw:
        if rule_verdict.category not in REBUILT:
            return old.visible_digest
        if override is None:
            shown = whole if emptied else snapshot
            assert shown.meaning is not None
            meaning = replace(shown.meaning, rows=rows.rows, columns=tuple(rows.columns.items()), order=rows.order)
            return replace(shown, meaning=meaning).visible_digest
    # a reader that the edit does not affect keeps its rows, and the empty table does not affect it either
    return whole.visible_digest if emptied else None


def _list_comparisons(candidate: Candidate) -> list[Comparison]:
    base = candidate.inputs.base
    news = ((name, parent) for name, parent in candidate.parents.items() if _may_be_the_same(parent))
    comparisons = (
        build_comparison(candidate.model.name, candidate.analysis.shape, base.get(name), parent.snapshot)
        for name, parent in news
    )
    return [question for question in comparisons if question is not None]


def _may_be_the_same(parent: Decision) -> bool:
    """Return True if a comparison may show no change: not if a person said breaking, or old rows stay on purpose."""
    insisted = parent.override is not None and parent.override.category is Category.BREAKING
    return parent.effect != UNTOUCHED and not insisted and not parent.is_forward_only


def _as_it_was(old: TableDigest, new: TableDigest) -> TableDigest:
    """Return what readers see of a model whose change is called non-breaking: existing columns look as before."""
    columns = {name: old.columns.get(name, column_digest) for name, column_digest in new.columns.items()}
    return TableDigest(old.rows, columns, old.order, new.placed)
