"""The constructs of Spark SQL as queries: `constructs.sql`, each value of which is written in several places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).parent / "constructs.sql"
_VALUE = re.compile(r"(\w): (.+)")
PLACES = (
    "SELECT {value} AS v FROM s.{table}",
    "SELECT id FROM s.{table} WHERE ({value}) IS NOT NULL",
    "SELECT id, CASE WHEN id > 1 THEN {value} END AS v FROM s.{table}",
    "SELECT q.v FROM (SELECT {value} AS v FROM s.{table} AS {table}) AS q",
    "SELECT o.id FROM s.o WHERE EXISTS (SELECT 1 FROM s.{table} WHERE {table}.id = o.id AND ({value}) IS NULL)",
    "SELECT TRANSFORM(ARRAY(1), q -> {value}) AS v FROM s.{table}",
    "WITH c AS (SELECT *, {value} AS v FROM s.{table}) SELECT id, v FROM c",
    "SELECT {value} AS v FROM s.{table} UNION ALL SELECT {value} FROM s.{table}",
    "FROM s.{table} |> SELECT {value} AS v",
)  # fmt: skip


@dataclass(frozen=True)
class Construct:
    """A query, and the heading below which it stands."""

    heading: str
    sql: str


def constructs(places: int = 1) -> Iterator[Construct]:
    """Every query of the file, each value of it in the first so many places."""
    heading = ""
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("-- "):
            heading = line.removeprefix("-- ")
        elif value := _VALUE.fullmatch(line):
            for place in PLACES[:places]:
                yield Construct(heading, place.format(table=value[1], value=value[2]))
        elif line.strip():
            yield Construct(heading, line)
