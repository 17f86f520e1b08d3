"""The switch of an atomic promotion: a view of one row, which says whether the environment is promoted.

While the promotion lasts, each view that moves reads its old table or its new one, as the switch says. Spark looks a
view up once for all places in which a query reads it, directly or through others: no query sees the switch in two
positions. Its row is a constant, so that the optimizer reads only the table that counts.
"""

from collections.abc import Mapping, Sequence

from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import QueryError
from mergeplan.planner.model.model import Column
from mergeplan.planner.naming import parts_of, quote_column, quote_name
from mergeplan.planner.snapshot.environment import View
from mergeplan.planner.state.promotions import Promotion

COLUMNS = (Column("promoted", "boolean"),)
NOT_THERE = "TABLE_OR_VIEW_NOT_FOUND"


def switch_of(promotion: Promotion) -> str:
    """Return a promotion's switch, in its first table's schema; '' if views move one by one, or only one moves."""
    moved = find_moved_views(promotion)
    if promotion.swap.wait_seconds is None or not moved or len(promotion.changes.names) == 1:
        return ""
    schema = moved[min(moved)].table.rpartition(".")[0]
    return f"{schema}.promotion_{promotion.id}"


def find_moved_views(promotion: Promotion) -> Mapping[str, View]:
    """Return the views of Spark's session catalog, as they will be, that show another table before the promotion.

    Other catalogs resolve views in their own way, so the switch does not cover them.
    """
    old, new = promotion.old.views_by_name, promotion.new.views_by_name
    session_views = (view for view in new.values() if not parts_of(view.name)[0] and not parts_of(view.table)[0])
    return {view.name: view for view in session_views if view.name in old and old[view.name].table != view.table}


def position_query(*, shows_new: bool) -> str:
    return f"SELECT {str(shows_new).lower()} AS promoted"


def is_promoted(engine: Engine, switch: str) -> bool | None:
    try:
        return bool(engine.fetch(f"SELECT promoted FROM {quote_name(switch)}").rows[0][0])
    except QueryError as error:
        if (error.condition or "").split(".")[0] != NOT_THERE:
            raise
        return None


def through_switch(switch: str, old: tuple[str, Sequence[Column]], new: tuple[str, Sequence[Column]]) -> str | None:
    """Return the query of a view that reads one of two tables, by the switch; None if their columns do not allow it.

    They allow it if the new table has the columns of the old one, of the same types and in the same order: added ones
    are NULL until the promotion. The new table comes first, since a union has the comments of its first columns.
    """
    had = [(column.name, column.type) for column in old[1]]
    has = [(column.name, column.type) for column in new[1]]
    if [field for field in has if field in had] != had:
        return None
    listed = [quote_column(name) for name, _ in has]
    old_values = [name if field in had else f"NULL AS {name}" for name, field in zip(listed, has, strict=True)]
    promoted = f"(SELECT promoted FROM {quote_name(switch)})"
    return (
        f"SELECT {', '.join(listed)} FROM {quote_name(new[0])} WHERE {promoted}\nUNION ALL\n"
        f"SELECT {', '.join(old_values)} FROM {quote_name(old[0])} WHERE NOT {promoted}"
    )
