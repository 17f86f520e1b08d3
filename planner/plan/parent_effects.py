"""What a model hears of those it reads: their rows as they are now, or as they were where that makes no difference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from planner.intervals import Timeline
from planner.plan.categorize import Verdict
from planner.plan.change import Category
from planner.plan.early_cutoff import Comparison, comparison, equal_time, open_questions
from planner.plan.schedule import Loaded
from planner.semantics.columns import Shape
from planner.semantics.digests import Seen
from planner.snapshot.meaning import meaning_of
from planner.snapshot.snapshot import Snapshot


@dataclass(frozen=True)
class Told:
    """A parent before and now, what it tells its readers to be, and whether that is news that tables may belie."""

    old: Snapshot | None
    new: Snapshot
    seen: Seen
    is_news: bool


@dataclass(frozen=True)
class Heard:
    """What a model's rows are by what it hears; `spared` are comparisons that it owes its table to, `questions` those
    that are still to be made, `same` is the time in which its rows are those of its old table."""

    seen: Seen
    spared: tuple[Comparison, ...] = ()
    questions: tuple[Comparison, ...] = ()
    same: Timeline = ()


def heard(
    fresh: Snapshot, shape: Shape | None, old: Snapshot, parents: Mapping[str, Told], loaded: Loaded, began: str
) -> Heard:
    """What a model decides by: its parents as they tell, and where tables were compared and found to hold the same
    rows, as they were before."""

    def hearing(alike: Iterable[Comparison]) -> Seen:
        seen = {name: told.seen for name, told in parents.items()}
        before = {each.model: each.old.seen for each in alike}
        return meaning_of(fresh.model, shape, seen | before, began).seen

    plain = hearing(())
    if loaded.contents is None or plain == old.raw:
        return Heard(plain)
    news = (told for told in parents.values() if told.is_news)
    asked = [found for told in news if (found := comparison(fresh.name, shape, told.old, told.new))]
    answers = [each.answer(loaded) for each in asked]
    if None not in answers and False in answers and hearing(asked) == old.raw:
        return Heard(plain, same=equal_time(fresh, shape, asked, loaded))
    hoped = [each for each, answer in zip(asked, answers, strict=True) if answer is not False]
    if not hoped or hearing(hoped) != old.raw:
        return Heard(plain)
    if None in answers:
        return Heard(plain, questions=open_questions(hoped, loaded))
    return Heard(hearing(hoped), spared=tuple(hoped))


def by_data(spared: tuple[Comparison, ...]) -> Verdict:
    """The verdict on a model whose parents came out the same."""
    said = []
    for each in spared:
        columns = ", ".join(f"`{column}`" for column in each.columns)
        said.append(f"`{each.model}` holds the same rows as before" + (f" in {columns}" if columns else ""))
    return Verdict(Category.INDIRECT_NON_BREAKING, "same-data", f"Computed anew, {' and '.join(said)}.")
