"""Physical plans that a real Spark explained, by format and by name; the query stands before each."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from mergeplan.planner.checks.physical_plan import Known, PhysicalPlan, read_plan

FOLDER = Path(__file__).parent / "explained"
TABLES = {
    "shop.orders": Known("shop.orders", frozenset({"day"})),
    "shop.items": Known("shop.items"),
    "shop.events": Known("shop.events", frozenset({"ts"})),
}


@cache
def texts(form: str) -> dict[str, str]:
    """Name -> the text of a plan."""
    parts = re.split(r"^-- (\w+): .*\n", (FOLDER / f"{form}.txt").read_text(), flags=re.M)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def plan(name: str, form: str = "parquet") -> PhysicalPlan:
    return read_plan(texts(form)[name], TABLES.get)


ALL = [(form, name) for form in ("parquet", "delta", "iceberg") for name in texts(form)]
READ = [case for case in ALL if case[1] != "forged"]
