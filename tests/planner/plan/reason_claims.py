"""A change whose reason is checked, and what its queries and its plan say of it.

Queries are read with sqlglot and on their own: no code is shared with what writes the reasons.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import read_setting, setting_parts
from mergeplan.planner.plan.change import Category, Change, Columns
from mergeplan.planner.snapshot.snapshot import Snapshot

NAMES = r"(`[^`]+`(?:(?:, | and )`[^`]+`)*)"
CLAUSES = r"([A-Z ]+(?:(?:, | and )[A-Z ]+)*)"
PAST = {"adds": "added", "alters": "altered", "removes": "removed"}
VERBS = rf"((?:(?:, | and )?(?:alters|removes|adds) {NAMES[1:-1]})+|changes)"
KEYWORDS: Mapping[str, tuple[type[exp.Expr], ...]] = {
    "WHERE": (exp.Where,), "HAVING": (exp.Having,), "QUALIFY": (exp.Qualify,), "GROUP BY": (exp.Group,),
    "DISTINCT": (exp.Distinct,), "LIMIT": (exp.Limit,), "OFFSET": (exp.Offset,), "ORDER BY": (exp.Order,),
    "VALUES": (exp.Values,), "TABLESAMPLE": (exp.TableSample,), "JOIN": (exp.Join,), "FROM": (exp.Table,),
    "ON": (exp.Join,), "LATERAL VIEW": (exp.Lateral,), "PIVOT": (exp.Pivot,), "UNPIVOT": (exp.Pivot,),
    "UNION": (exp.Union,), "EXCEPT": (exp.Except,), "INTERSECT": (exp.Intersect,),
}  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """A change whose reason is checked, among all changes of its plan."""

    change: Change
    plan: Mapping[str, Change]
    snapshots: Mapping[str, Snapshot]  # of all models, as the plan leaves them

    @property
    def old(self) -> Model:
        assert self.change.old is not None
        return self.change.old.model

    @property
    def new(self) -> Model:
        assert self.change.new is not None
        return self.change.new.model

    @property
    def columns(self) -> Columns:
        return self.change.columns

    def parent(self, name: str) -> Columns:
        """The columns of a parent that its own change touches, and those that may come out otherwise."""
        assert name in self.old.depends_on
        change = self.plan[name]
        meaning = change.new.meaning if change.new and change.new.kind.is_stored else None
        chance = (meaning.volatile if meaning and change.recomputed else frozenset[str]()) - change.columns.added
        every = change.columns.every or bool(meaning and meaning.volatile_rows and change.recomputed)
        # what a view passes on of a parent that is computed anew is other than before too
        told = change.columns
        return Columns(told.added, told.altered | chance, told.removed, every, told.order)


Check = Callable[[Claim, re.Match[str]], bool]


def names_in_list(text: str) -> list[str]:
    """The names of a list in backticks."""
    return re.findall(r"`([^`]+)`", text)


def tree(model: Model) -> exp.Expr:
    return sqlglot.parse_one(model.sql, dialect="spark")


def column_names(model: Model) -> set[str]:
    """The column names that stand in a query."""
    return {column.name.lower() for column in tree(model).find_all(exp.Column)}


def has_star(model: Model) -> bool:
    """True for a star that stands for columns, and not only for rows as in COUNT(*)."""
    return any(not isinstance(star.parent, exp.Count) for star in tree(model).find_all(exp.Star))


def clause(model: Model, keyword: str) -> list[str]:
    return sorted(_clause_text(keyword, node) for node in tree(model).find_all(*KEYWORDS[keyword]))


def _clause_text(keyword: str, node: exp.Expr) -> str:
    if keyword == "FROM":
        return str(node.this).lower() + str(node.args.get("db")).lower()
    if keyword == "ON":
        return str(node.args.get("on") or node.args.get("using") or "")
    return node.sql(dialect="spark")


def words(text: str) -> list[str]:
    return re.split(r", | and ", text)


def touches(columns: Columns, text: str) -> bool:
    """True when the verbs of a text say exactly which columns are touched."""
    if text == "changes":
        return columns.every
    by_verb = {
        PAST[verb]: set(names_in_list(names)) for verb, names in re.findall(rf"(alters|removes|adds) {NAMES}", text)
    }
    return all(by_verb.get(word, set()) == set(getattr(columns, word)) for word in PAST.values())


def parent_touches(claim: Claim, parent: str, text: str) -> bool:
    """As `touches`, of a parent; a view shows what its own parents changed, and is checked by that."""
    columns = claim.parent(parent)
    return touches(columns, text) or (columns.every and claim.plan[parent].columns.every is False)


def reads_only(claim: Claim, names: list[str], parent: str, idle: bool) -> bool:
    """True when a query names these columns of a parent alone; with `idle` it names others to no effect."""
    columns = claim.parent(parent)
    changed = columns.altered | columns.removed
    has = set(claim.snapshots[parent].columns or ()) | set(columns.removed)
    others = {c for p in claim.new.depends_on if p != parent for c in claim.snapshots[p].columns or ()}
    stray = (column_names(claim.new) & has) - set(names) - others - aliases(claim.new)
    if not set(names) <= has or not changed.isdisjoint(names):
        return False
    return bool(stray) if idle else has_star(claim.new) or bool(inner(claim.new)) or not stray


def aliases(model: Model) -> set[str]:
    laterals = (name.name.lower() for lateral in tree(model).find_all(exp.TableAlias) for name in lateral.columns)
    return {alias.alias.lower() for alias in tree(model).find_all(exp.Alias)} | {*laterals}


def inner(model: Model) -> list[exp.Expr]:
    return [*tree(model).find_all(exp.CTE), *tree(model).find_all(exp.Subquery)]


def is_changed(claim: Claim, column: str) -> bool:
    parent, _, name = column.rpartition(".")
    columns = claim.parent(parent)
    return columns.every or name in columns.altered | columns.removed


def same_fields(claim: Claim, but: set[str]) -> bool:
    """True when old and new model differ in these fields alone, and in what says where they stand."""
    free = but | {"source", "line", "text", "text_line", "path"}
    return all(read_setting(claim.old, f) == read_setting(claim.new, f) for f in setting_parts(Model) if f not in free)


def upstream_sorted(claim: Claim) -> bool:
    """True when it or a model below it is written with ORDER BY, before or after."""
    waiting, seen = [claim.change.name], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        change, now = claim.plan.get(name), claim.snapshots.get(name)
        for snapshot in (change.old if change else now, change.new if change else now):
            if snapshot and snapshot.model.sql:
                if tree(snapshot.model).find(exp.Order, exp.Sort):
                    return True
                waiting += snapshot.model.depends_on
    return False


def earliest(claim: Claim) -> bool:
    """True when a model above it has another start than before."""
    changed = (c for c in claim.plan.values() if c.old and c.new)
    pairs = ((c.old.model.schedule, c.new.model.schedule) for c in changed)  # type: ignore[union-attr]
    return any(old.start != new.start for old, new in pairs) and claim.new.schedule.start is None


def is_unfollowed(claim: Claim) -> bool:
    """True where the analysis has no clauses to tell rows from columns by, or they are all as they were."""
    return claim.columns.every


def rows_stay(claim: Claim, text: str) -> bool:
    """True when as many rows of the old table stay as a forward-only sentence says."""
    rows = claim.change.forward.rows if claim.change.forward else ()
    if "existing rows stay" in text:
        return bool(rows) or not claim.change.kind.is_stored
    if match := re.search(r"the rows before (\S+) stay", text):
        return bool(rows) and f"{rows[-1].end:%Y-%m-%d}" <= match[1]
    return not rows


def volatile(claim: Claim) -> set[str]:
    """The columns that come out otherwise when the table is computed; one stands for all rows."""
    new, old = claim.change.new, claim.change.old
    if not claim.change.recomputed or new is None or new.meaning is None or old is None:
        return set()
    columns = set(new.meaning.volatile) & set(old.columns or ()) - claim.columns.added - claim.columns.altered
    return columns | ({"*"} if new.meaning.volatile_rows else set())


def mentions(model: Model, name: str) -> bool:
    """True when a name stands in a query, or a NATURAL JOIN joins by whatever both sides have."""
    return bool(re.search(rf"\b{name}\b", model.sql, re.I)) or "NATURAL" in model.sql.upper()


def is_as_before(claim: Claim, parent: str) -> bool:
    change = claim.plan[parent]
    equal = change.category in (Category.METADATA, Category.EQUIVALENT, Category.INDIRECT_NON_BREAKING)
    return (
        equal
        or change.columns == Columns()
        or change.columns == Columns(order=True)
        or change.rule in ("kind-changed", "layout-changed")
    )


def is_setting(claim: Claim, name: str) -> bool:
    """True when a property of this name differs; a few have another name, or are worked out."""
    fields_of = {
        "start": ("start", "start_text"), "interval_unit": ("cron",), "when_matched": ("when_matched",),
        "pre_statements": ("pre_statements",), "seed": ("seed",),
    }  # fmt: skip
    return any(read_setting(claim.old, f) != read_setting(claim.new, f) for f in fields_of.get(name, (name,)))


def setting_effect(claim: Claim, text: str) -> bool:
    if text == ", and with it the rows":
        return claim.columns.every
    if text == "; the rows stay the same ones":
        return claim.columns == Columns() and not volatile(claim)
    if text.startswith("; it puts"):
        return claim.change.recomputed
    return not text or touches(claim.columns, text.removeprefix("; it ")) or claim.columns.every
