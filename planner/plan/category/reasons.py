"""Sentences that explain decisions: each states facts of the queries and their parents, and no more than is known."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from sqlglot import exp

from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.change import Columns
from mergeplan.planner.semantics.query.clause_texts import dependent_clause, find_changed_clauses
from mergeplan.planner.semantics.shape import Reads, Shape
from mergeplan.planner.semantics.spark.spark_sql import FAILURES, tree_of
from mergeplan.planner.semantics.syntax import is_star_of_count
from mergeplan.planner.wording import join_names

NOTHING = Columns()
NO_COLUMNS = frozenset[str]()
NAMES_MOST = 10  # of columns or models in a sentence
LIMITED = "the query that LIMIT takes rows of"  # as `clauses` calls it
SAME_QUERY = "The new text means the same query."
UNFOLLOWED = "Rows and columns cannot be distinguished here, so every row counts as changed."


@dataclass(frozen=True)
class Causes:
    """Causes besides its own edit that may change a model's rows.

    `effects` are the changed columns by parent. `added` are parents that are new models. `reordered` are parents whose
    columns have another order. `overridden` are parents whose change a person categorized as non-breaking.
    `moved_start`: the first day that the model takes from them moved. `loses_kept_rows`: its own table holds rows of a
    forward-only change. `volatile` are columns that may come out different each time, and `volatile_rows` says so of
    all rows.
    """

    effects: Mapping[str, Columns] = field(default_factory=dict)
    added: frozenset[str] = frozenset()
    reordered: frozenset[str] = frozenset()
    overridden: frozenset[str] = frozenset()
    moved_start: bool = False
    loses_kept_rows: bool = False
    volatile: frozenset[str] = frozenset()
    volatile_rows: bool = False

    @property
    def parents_with_effect(self) -> list[str]:
        return sorted(parent for parent, effect in self.effects.items() if effect != NOTHING)

    @property
    def parents_with_other_data(self) -> list[str]:
        """The parents whose rows or columns changed, and not only their order."""
        return sorted(parent for parent, effect in self.effects.items() if replace(effect, order=False) != NOTHING)


def edit_reason(old: Model, before: Shape | None, new: Model, after: Shape | None) -> str:
    one, two = (shape.frame if shape else {} for shape in (before, after))
    labels = [label for label in {**one, **two} if one.get(label, "") != two.get(label, "")]
    if new.reads_itself:
        return "It reads itself: each row depends on those before it, and its query changed."
    if not one or not two:
        return _obstacle_reason(after) or _obstacle_reason(before) or UNFOLLOWED
    if labels:
        if labels == [LIMITED]:
            return "The query that LIMIT takes rows of changed, and with it the rows."
        if clauses := find_changed_clauses(labels, old.sql, new.sql):
            return f"{format_names(clauses, quoted=False)} changed, and with it the rows."
        if keyword := dependent_clause(labels, new.sql):
            return f"The SELECT list changed, and {keyword} depends on it."
        return "The SELECT list changed, and with it the rows."
    time_column = new.by_time.time_column
    if time_column and _column_digest(before, time_column) != _column_digest(after, time_column):
        return f"`{time_column}` changed, and it decides the interval of a row."
    return UNFOLLOWED


def _obstacle_reason(shape: Shape | None) -> str:
    obstacle = shape.obstacle if shape else ""
    return f"mergeplan cannot follow {obstacle}, so every row counts as changed." if obstacle else ""


def chance_reason(causes: Causes, touched_columns: Columns) -> str:
    """Return a sentence about columns or rows that are not deterministic and may change when a table is recomputed."""
    if touched_columns.every:
        return ""
    if causes.volatile_rows:
        return "Its rows may differ when they are computed again."
    columns = sorted(causes.volatile - touched_columns.added - touched_columns.altered)
    return f"{format_names(columns)} may differ when computed again." if columns else ""


def parents_reason(sql: str, before: Shape | None, after: Shape | None, causes: Causes) -> tuple[str, str]:
    """Return the rule and the sentence for a text whose rows differ since its parents changed."""
    reason = (
        _rows_of_parents(causes)
        or _columns_of_parents(after, causes)
        or _keys_of_parents(before, after)
        or _start_or_order(causes)
        or _other_reading(sql, before, after, causes)
    )
    if causes.loses_kept_rows:
        rule, text = reason or ("reads-changed-rows", "")
        return rule, f"{text} The rows that a forward-only change kept in its table are computed again too.".strip()
    if reason:
        return reason
    effects = {parent: effect_verbs(causes.effects[parent]) for parent in causes.parents_with_other_data}
    facts = " and ".join(f"`{parent}` {verbs or 'changes'}" for parent, verbs in effects.items())
    meaning = f"{facts or 'what it reads changed'}, and the same query means something else now"
    return "reads-changed-column", sentence(meaning)


def no_change_reason(shape: Shape | None, causes: Causes) -> tuple[str, str]:
    """Return the rule and the sentence for a model whose rows stay the same despite its parents' changes."""
    parents = causes.parents_with_other_data
    if parents and shape is not None:
        effects = causes.effects
        facts = [
            f"{_describe_reads(shape, parent, effects[parent])}, which {effect_verbs(effects[parent]) or 'changes'}"
            for parent in parents
        ]
        return "reads-nothing-changed", sentence(" and ".join(facts))
    if causes.overridden:
        chosen = sorted(causes.overridden)
        reason = f"{format_names(chosen)} {_is_or_are(chosen)} categorized as non-breaking, so it keeps its table."
        return "parents-unchanged", reason
    return "parents-unchanged", "Its inputs hold the same rows as before."


def effect_verbs(touched_columns: Columns) -> str:
    """Return a text such as: alters `a`, removes `b` and adds `c`."""
    pairs = (("alters", touched_columns.altered), ("removes", touched_columns.removed), ("adds", touched_columns.added))
    parts = [f"{verb} {format_names(sorted(columns))}" for verb, columns in pairs if columns]
    return join_names(parts)


def sentence(text: str) -> str:
    """Return the text with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def format_names(items: Iterable[str], *, quoted: bool = True, owner: str = "", most: int = NAMES_MOST) -> str:
    """Return a text such as: `a`, `b` and `c`; name only the first of many, and how many more there are."""
    shown = [f"`{owner}.{item}`" if owner else f"`{item}`" if quoted else item for item in items]
    if len(shown) > most:
        shown = [*shown[: most - 1], f"{len(shown) - most + 1} more"]
    return join_names(shown)


def columns_read(reads: Reads) -> frozenset[str]:
    return reads.rows | frozenset[str]().union(*reads.outputs.values())


def _rows_of_parents(causes: Causes) -> tuple[str, str] | None:
    every = [parent for parent in causes.parents_with_effect if causes.effects[parent].every]
    if added := [parent for parent in every if parent in causes.added]:
        reason = f"{format_names(added)} {_is_or_are(added)} added as {'a model' if len(added) == 1 else 'models'}."
        return "reads-changed-rows", reason
    return ("reads-changed-rows", f"The rows of {format_names(every)} change.") if every else None


def _columns_of_parents(after: Shape | None, causes: Causes) -> tuple[str, str] | None:
    hits: list[str] = []
    for parent in causes.parents_with_other_data:
        effect, reads = causes.effects[parent], after.reads.get(parent) if after else None
        changed = effect.altered | effect.removed
        if reads is None or reads.every:
            why = f": mergeplan cannot follow {after.obstacle}" if after and after.obstacle else ""
            unknown = f"The columns that it reads of `{parent}` are not known{why}, so all of them count"
            return "reads-every-column", f"{unknown}; `{parent}` {effect_verbs(effect) or 'changes'}."
        if hit := changed & reads.rows:
            reason = f"{format_names(sorted(hit), owner=parent)} changed, and its rows depend on that."
            return "reads-changed-column", reason
        hits += [f"{parent}.{column}" for column in sorted(changed & columns_read(reads))]
    return ("reads-changed-column", f"Reads {format_names(hits)}, which changed.") if hits else None


def _keys_of_parents(before: Shape | None, after: Shape | None) -> tuple[str, str] | None:
    old_keys, new_keys = ({*shape.relies} if shape else set() for shape in (before, after))
    if parents := sorted({parent for parent, _ in old_keys ^ new_keys}):
        reason = f"The keys of {format_names(parents)} changed, and which rows it takes may depend on them."
        return "reads-changed-rows", reason
    return None


def _start_or_order(causes: Causes) -> tuple[str, str] | None:
    if causes.moved_start:
        return "starts-elsewhere", "Its first day, which it takes from what it reads, is another one now."
    if ordered := [parent for parent in causes.parents_with_effect if causes.effects[parent].order]:
        order = "their rows in another order" if len(ordered) > 1 else "its rows in another order"
        reason = f"{format_names(ordered)} may return {order}, and what is taken of them depends on that."
        return "reads-changed-order", reason
    return None


def _other_reading(sql: str, before: Shape | None, after: Shape | None, causes: Causes) -> tuple[str, str] | None:
    for parent in causes.parents_with_other_data:
        effect, starred = causes.effects[parent], has_star_over(sql, parent)
        old_columns, new_columns = (
            columns_read(shape.reads.get(parent, Reads())) if shape else NO_COLUMNS for shape in (before, after)
        )
        if added := sorted(effect.added & new_columns):
            phrase = "Its `*` now includes" if starred else "By its names it now reads"
            reason = f"{phrase} {format_names(added, owner=parent)}, which {_is_or_are(added)} added."
            return "reads-changed-column", reason
        if removed := sorted(effect.removed & old_columns):
            phrase = "Its `*` no longer includes" if starred else "By its names it read"
            reason = f"{phrase} {format_names(removed, owner=parent)}, which {_is_or_are(removed)} removed."
            return "reads-changed-column", reason
    if reordered := sorted(parent for parent in causes.reordered if has_star_over(sql, parent)):
        order = f"The columns of {format_names(reordered)} have another order"
        return "reads-reordered-columns", f"{order}, and its `*` takes them in that order."
    return None


def _describe_reads(shape: Shape, parent: str, effect: Columns) -> str:
    reads = shape.reads.get(parent, Reads(every=True))
    if reads.every:
        return f"reads `{parent}`"
    read = columns_read(reads)
    # a column in an ORDER BY, or in the SELECT of an EXISTS, is read and decides nothing
    idle = shape.named & (effect.altered | effect.removed) - read
    verb = "its rows depend on" if idle else "reads"
    return f"{verb} only {format_names(sorted(read))} of `{parent}`" if read else f"{verb} no column of `{parent}`"


def _column_digest(shape: Shape | None, name: str) -> str:
    return shape.own.columns.get(name, "") if shape and shape.own else ""


def _is_or_are(items: Collection[str]) -> str:
    return "is" if len(items) == 1 else "are"


@lru_cache(maxsize=1024)
def has_star_over(sql: str, table: str) -> bool:
    """Return True if a `*` of the query may represent columns of the table; the one of COUNT(*) represents none."""
    if "*" not in sql:
        return False
    try:
        tree = tree_of(sql)
    except FAILURES:
        return False
    return any(_may_cover(star, tree, table) for star in tree.find_all(exp.Star) if not is_star_of_count(star))


def _may_cover(star: exp.Star, tree: exp.Expr, table: str) -> bool:
    column = star.parent
    qualifier = column.table.lower() if isinstance(column, exp.Column) else ""
    select = star.find_ancestor(exp.Select)
    # a star over a CTE or a subquery may stand for the columns of any table below it
    nodes = (select or tree).find_all(exp.Table)
    sources = [node for node in nodes if not qualifier or node.alias_or_name.lower() == qualifier]
    return not sources or any(
        not table_node.db or f"{table_node.db}.{table_node.name}".lower() == table for table_node in sources
    )
