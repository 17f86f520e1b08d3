"""The state that made a physical table: no other one writes it, or points a view at it.

Two states give the table of the same query the same name. On one catalog, the state on a person's machine would fill
the tables of prod, and drop them with an environment.
"""

from collections.abc import Iterable

from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import Refused
from mergeplan.planner.state.store import StateStore


def check_owner(tables: Iterable[str], store: StateStore, engine: Engine) -> None:
    """Raise Refused for a table that another state made; one without an owner is older than owners are recorded."""
    for table in tables:
        owner = engine.catalog.owner(table)
        if owner and owner != store.tables.owner():
            raise Refused(
                f"`{table}` was made by another state, `{owner}`.",
                hint="Use that state: set `MERGEPLAN_STATE_URL`, and `MERGEPLAN_PROJECT` if a service keeps it. For "
                "tables of your own, set `physical_schema_mapping`. If that state is lost, run "
                f"`mergeplan state takeover {owner}`.",
            )
