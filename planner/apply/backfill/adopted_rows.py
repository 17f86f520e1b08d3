"""Whether a table that was made over the files of another one shows all of its rows."""

from __future__ import annotations

from mergeplan.planner.engine.formats.conditions import within
from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.engine.table import Table
from mergeplan.planner.errors import Refused
from mergeplan.planner.plan.change import Adoption

HINT = "Let its rows be copied: `copy: true` in the file of `--file`, or `--copy`."


def check_same_rows(engine: Engine, table: Table, adoption: Adoption) -> None:
    """Refused when the new table shows more or fewer rows of the adopted time than the one that it was made over."""
    where = within(table, adoption.rows)
    own = engine.engine_for(table.gateway)
    asked = f"SELECT (SELECT count(*) FROM {table.name}), (SELECT count(*) FROM {adoption.place} WHERE {where})"
    here, there = own.fetch(asked).rows[0]
    if here != there:
        raise Refused(
            f"Of {there} rows of `{adoption.place}` a table over its files shows {here}: they do not lie in folders "
            "that are named as its partitions.",
            hint=HINT,
        )
