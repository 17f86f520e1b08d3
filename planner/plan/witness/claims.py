"""Claims: models of a plan that keep rows by the rules, although they or something that they read was edited."""

from collections.abc import Mapping
from dataclasses import dataclass

from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.category.later_form import RULE as LATER_FORM
from mergeplan.planner.plan.change import Category, Change, ChangeKind, Columns

KEEPS = (Category.EQUIVALENT, Category.METADATA, Category.INDIRECT_NON_BREAKING)
UNTOUCHED = Columns()
EDITED = (ChangeKind.DIRECT, ChangeKind.METADATA)


@dataclass(frozen=True)
class Claim:
    """The rules' claim about a changed model: its rows are the old ones, in all columns or in these.

    Of a model whose later form changed, it is about its first form.
    """

    change: Change
    columns: tuple[str, ...] | None = None  # None: in all, and no other comes or goes

    @property
    def model(self) -> str:
        return self.change.name

    @property
    def key(self) -> str:
        return self.change.claim


def claims_of(plan: Plan) -> tuple[Claim, ...]:
    """Return the claims of a plan, parents first; a change with a person's category makes no claim."""
    changes = {change.name: change for change in plan.changes}
    readers = {parent for name in changes for parent in plan.parents.get(name, ())}
    claims = (_claim_of(plan, changes, change, change.name in readers) for change in plan.changes)
    return tuple(filter(None, claims))


def _claim_of(plan: Plan, changes: Mapping[str, Change], change: Change, is_read: bool) -> Claim | None:
    old, new = change.old, change.new
    if old is None or new is None or change.override or not (old.kind.has_query and change.claim):
        return None
    read = {*plan.parents.get(change.name, ()), *old.model.depends_on}
    parents = [changes[name] for name in read if name in changes]
    is_felt = any(p.change is not ChangeKind.INDIRECT or p.effect != UNTOUCHED or p.kind.is_embedded for p in parents)
    if change.change not in EDITED and not is_felt:
        return None
    if change.category in KEEPS or change.rule == LATER_FORM:
        return Claim(change)
    if change.rule == "layout-changed" and change.category is Category.NON_BREAKING:
        return Claim(change)
    effect = change.effect
    if effect.every or not is_read or change.category is Category.FORWARD_ONLY or old.columns is None:
        return None
    changed_names = effect.altered | (effect.removed - find_renamed(change).keys())
    history_names = {column.name for column in new.model.history_columns}
    return Claim(change, tuple(name for name in old.columns if name not in changed_names | history_names))


def find_renamed(change: Change) -> Mapping[str, str]:
    """Return the new name of each column that goes and whose values a column that comes holds."""
    if change.old is None or change.new is None or change.effect.every:
        return {}
    old, new = change.old.visible_digest.columns, change.new.visible_digest.columns
    new_names = {new[name]: name for name in sorted(change.effect.added) if name in new}
    return {name: new_names[old[name]] for name in sorted(change.effect.removed) if old.get(name) in new_names}
