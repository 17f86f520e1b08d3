"""What a plan promises of each model: that rows, or some of their columns, are what they were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mergeplan.planner.errors import ProjectErrors
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.table_order import order_columns
from mergeplan.planner.plan.change import REBUILT, Category, Change
from tests.planner.building import change_of
from tests.planner.generating.data import rows_of

from .answers import Answer, Asking, Broken, Content
from .running import query_of

KEEPS = (Category.EQUIVALENT, Category.METADATA, Category.INDIRECT_NON_BREAKING)
Models = Mapping[str, Model]


def verdicts(before: Models, after: Models) -> dict[str, Change] | None:
    """The plan's verdicts; None when it refuses the edit."""
    try:
        return change_of(before, after)
    except ProjectErrors:
        return None


def proof(before: Models, after: Models, changes: Mapping[str, Change]) -> Asking:
    """Ask for the rows of models as they were and as they would be, and compare what is promised."""
    was: dict[str, Content] = {}
    now: dict[str, Content] = {}
    kept, refused, broken = 0, 0, list[Broken]()
    promised = _names_promised(before, after, changes)
    for name in _add_parents(promised, before, after):
        old, new, change = before.get(name), after[name], changes.get(name)
        again = change is not None and change.category in REBUILT
        # a model's own luck is not what its verdict is about: readers see it turned, the model itself does not
        queries = [_query(old, was, False), _query(new, now, False), _query(new, now, again)]
        wanted = [query for query in queries if query]
        known = dict(zip(wanted, (yield wanted), strict=True))
        sides = zip((old, new, new), queries, strict=True)
        first, own, read = (_name_columns(model or new, known.get(query)) for model, query in sides)
        if first is not None:
            was[name] = first
        if read is not None:
            now[name] = _lying(new, first, read)
        if name not in promised:
            continue
        if first is None or own is None:
            refused += 1
            continue
        kept += queries[0] != queries[1]  # the same query over the same rows proves nothing
        broken += [failure for failure in [compare(name, change, first, own)] if failure]
    return Answer(kept, refused, tuple(broken))


def telling_apart(before: Models, after: Models, changes: Mapping[str, Change], same_rows: dict[str, bool]) -> Asking:
    """Ask for the rows of every model that is there before and after: `found` says of each whether they are the same.

    What the promises come to is answered as by `proof`; a model that Spark refuses is not among the found.
    """
    was: dict[str, Content] = {}
    now: dict[str, Content] = {}
    broken: list[Broken] = []
    refused = 0
    for name in order_names(after):
        old, new = _query(before.get(name), was, False), _query(after[name], now, False)
        wanted = [query for query in (old, new) if query]
        known = dict(zip(wanted, (yield wanted), strict=True))
        first = _name_columns(before.get(name, after[name]), known.get(old))
        second = _name_columns(after[name], known.get(new))
        if second is not None:
            now[name] = _lying(after[name], first, second)
        if first is None or second is None:
            refused += 1
            continue
        was[name] = first
        same_rows[name] = first.same(second) and list(first.types.items()) == list(second.types.items())
        if promises(changes.get(name)):
            broken += [failure for failure in [compare(name, changes.get(name), first, second)] if failure]
    return Answer(len(same_rows), refused, tuple(broken))


def _lying(model: Model, old: Content | None, new: Content) -> Content:
    """The rows as they lie: a table's in an order that is nobody's doing, a view's as its query returns them."""
    return new if old is None or not model.kind.is_stored else new.lying_as(old)


def _name_columns(model: Model, content: Content | None) -> Content | None:
    """The rows with the names as readers meet them: those of a query that is put in its readers are as it writes them,
    those of a table or view are in lower case."""
    if content is None or model.kind is Kind.EMBEDDED:
        return content
    lower = content.lower_names()
    return lower.arrange(order_columns(model, lower.types, {}))


def _names_promised(before: Models, after: Models, changes: Mapping[str, Change]) -> frozenset[str]:
    """The models of which something is promised although they, or something that they read, were edited."""
    felt: set[str] = set()
    for name in order_names(after):
        if name not in before or before[name].sql != after[name].sql or not felt.isdisjoint(after[name].depends_on):
            felt.add(name)
    return frozenset(name for name in felt if name in before and promises(changes.get(name)))


def _add_parents(names: Iterable[str], before: Models, after: Models) -> list[str]:
    """The models and all that they read, now or before, parents first."""
    reached, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += [*before[name].depends_on, *after[name].depends_on]
    return [name for name in order_names(after) if name in reached]


def _query(model: Model | None, parents: Mapping[str, Content], again: bool) -> str:
    """What to ask Spark for a model's rows; '' when a parent's rows are not known."""
    if model is None or any(parent not in parents for parent in model.depends_on):
        return ""
    if model.kind is Kind.EXTERNAL:
        return rows_of(model.name, [column.name for column in model.columns])
    return query_of(model, {parent: parents[parent] for parent in model.depends_on}, again)


def promises(change: Change | None) -> bool:
    """True when something of the model is said to stay as it is."""
    if change is None or keeps_all(change):
        return True
    if change.old is None or change.new is None or change.columns.every or change.old.columns is None:
        return False
    columns = change.columns
    return bool(set(change.old.columns) - columns.added - columns.altered - columns.removed)


def keeps_all(change: Change | None) -> bool:
    """True when every row is said to stay as it is."""
    if change is None:
        return True
    stored = change.new is not None and change.new.kind.is_stored
    return change.category in KEEPS or (stored and change.old is not None and not change.recomputed)


def compare(name: str, change: Change | None, old: Content, new: Content) -> Broken | None:
    """The promise that is broken, if one is."""
    verdict = f"{change.category} by {change.rule}" if change else "untouched"
    columns: list[str] | None = None
    if not keeps_all(change):
        assert change is not None
        touched = change.columns.added | change.columns.altered | change.columns.removed
        columns = [column for column in old.types if column.lower() not in touched]
        if not columns:
            return None
    told = None if columns is None else tuple(columns)
    if columns is None:
        if list(old.types.items()) != list(new.types.items()):
            return Broken(name, verdict, told, (old.type,), (new.type,))
        columns = list(old.types)
    missing = [column for column in columns if old.types[column] != new.types.get(column)]
    if missing:
        types = tuple(f"{c}: {old.types[c]} -> {new.types.get(c)}" for c in missing)
        return Broken(name, verdict, told, types, ())
    one, two = old.project_columns(columns), new.project_columns(columns)
    return None if one == two else Broken(name, verdict, told, _without(one, two), _without(two, one))


def _without(rows: list[str], others: list[str]) -> tuple[str, ...]:
    rest = list(others)
    unmatched = []
    for row in rows:
        if row in rest:
            rest.remove(row)
        else:
            unmatched.append(row)
    return tuple(unmatched[:5])


def order_names(models: Models) -> list[str]:
    """Names, parents first."""
    order: dict[str, None] = {}

    def visit(name: str) -> None:
        for parent in models[name].depends_on:
            if parent not in order:
                visit(parent)
        order[name] = None

    for name in models:
        if name not in order:
            visit(name)
    return list(order)
