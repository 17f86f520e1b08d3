"""Edits of and above dbt models of two forms, generated: what the rules keep is what builds from scratch hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.files.dbt.texts import model_text
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.plan.change import Category, Change
from mergeplan.planner.semantics.two_forms import join_forms
from tests.planner.building import NOW, change_of, external, project
from tests.planner.dbt.test_texts import incremental

DAYS = {
    "2026-01-02": ("1, 5, 7, 1, date'2026-01-01'", "2, 6, 8, 0, date'2026-01-01'"),
    "2026-01-03": (
        "1, 9, 3, 1, date'2026-01-02'",
        "2, 6, 8, 1, date'2026-01-01'",
        "3, 4, 4, 0, date'2026-01-02'",
        "4, -4, 1, 1, date'2026-01-02'",
    ),
}
SOURCE = "SELECT id, x, y, z, at FROM raw.items"
WIDE = "cast(s.x as bigint)"
FIRST = "select s.id, s.x, s.at from shop.src as s"
LATER = {
    "chosen": f"{FIRST} where s.at > (select max(at) from s.t)",
    "new keys": f"{FIRST} where s.id not in (select id from s.t)",
    "carried": "select s.id, s.x + coalesce(m.x, 0) as x, s.at from shop.src as s left join s.t as m on m.id = s.id"
    " where s.at > (select max(at) from s.t)",
    "flagged": f"{FIRST} where s.z > 0",
    "dated": f"{FIRST} where s.at >= date'2026-01-02'",
}
STRATEGIES: Mapping[str, dict[str, object]] = {
    "append": {},
    "merge": {"unique_key": "id"},
    "delete+insert": {"unique_key": "id"},
    "insert_overwrite": {"partition_by": "at"},
}
READERS = (
    "MODEL (name shop.mart, kind FULL);\nSELECT id, x FROM s.t",
    "MODEL (name shop.few, kind FULL);\nSELECT COUNT(*) AS n FROM s.t",
)
TABLES = ("s.t", "shop.mart", "shop.few")


@dataclass(frozen=True)
class Forms:
    """A model above, and one of two forms that reads it."""

    strategy: str
    later: str
    source: str = SOURCE
    first: str = FIRST

    def models(self) -> list[str]:
        node = incremental(self.strategy, self.later, text=self.first, **STRATEGIES[self.strategy])
        mart = READERS[0].replace("x", "v") if " as v," in self.first else READERS[0]
        return [f"MODEL (name shop.src, kind FULL);\n{self.source}", model_text(node), mart, READERS[1]]

    def both(self, *changed: tuple[str, str]) -> Forms:
        first, later = self.first, self.later
        for old, new in changed:
            first, later = first.replace(old, new, 1), later.replace(old, new, 1)
        return replace(self, first=first, later=later)


def above(old: str, new: str) -> Callable[[Forms], Forms]:
    return lambda forms: replace(forms, source=SOURCE.replace(old, new))


EDITS: Mapping[str, Callable[[Forms], Forms]] = {
    "above, a column that nobody reads": above("id,", "id, 1 AS more,"),
    "above, another column that nobody reads": above(" y,", " y + 1 AS y,"),
    "above, a column that is read": above(" x,", " x * 2 AS x,"),
    "above, a column that some later forms read": above(" z,", " 1 - z AS z,"),
    "above, a filter": above("raw.items", "raw.items WHERE id < 4"),
    "above, a name that nobody reads": above(" y,", " y AS w,"),
    "above, a type": above(" x,", " CAST(x AS BIGINT) AS x,"),
    "above, a type that nobody reads": above(" y,", " CAST(y AS BIGINT) AS y,"),
    "above, the order of columns": above("id, x, y", "y, x, id"),
    "above, other words": above(SOURCE, f"SELECT * FROM ({SOURCE}) AS q"),
    "a filter of the first form": lambda forms: replace(forms, first=f"{forms.first} where s.id > 1"),
    "a filter of the later form": lambda forms: replace(forms, later=f"{forms.later} and s.id > 1"),
    "the filter of the later form": lambda forms: replace(forms, later=forms.later.replace(" > ", " >= ", 1)),
    "a filter of both": lambda forms: replace(
        forms, first=f"{forms.first} where s.id > 1", later=f"{forms.later} and s.id > 1"
    ),
    "a column more": lambda forms: forms.both((", s.at", ", s.at, s.y")),
    "a column computed otherwise": lambda forms: forms.both(("s.x,", "s.x * 3 as x,"), ("s.x +", "s.x * 3 +")),
    "a column of the first form": lambda forms: replace(forms, first=forms.first.replace("s.x,", "s.x + 1 as x,")),
    "a column of the later form": lambda forms: replace(
        forms, later=forms.later.replace("s.x,", "s.x + 1 as x,").replace("s.x +", "2 * s.x +")
    ),
    "a type of both": lambda forms: forms.both(
        ("s.x,", "cast(s.x as bigint) as x,"), ("s.x +", "cast(s.x as bigint) +")
    ),
    "a name of both": lambda forms: forms.both(("s.x,", "s.x as v,"), ("m.x", "m.v"), (") as x,", ") as v,")),
    "other words of the first form": lambda forms: replace(forms, first=f"select * from ({forms.first}) as q"),
    "other words of the later form": lambda forms: replace(forms, later=f"with q as ({forms.later}) select * from q"),
    "a comment": lambda forms: replace(forms, later=f"{forms.later} -- again"),
}
BASES = [
    Forms(strategy, later)
    for strategy in STRATEGIES
    for name, later in LATER.items()
    if strategy != "delete+insert" or "s.t" not in later
]


SAMPLE = 6  # of edits for each base: each edit is built over several
LATER_EDITS = {name for name in EDITS if name.endswith("of the later form")}
ASIDE = ("above, the order of columns", "above, a column that some later forms read", "a comment")
UNREAD = {*ASIDE, *(name for name in EDITS if "nobody" in name or "words" in name)}


Tables = dict[str, tuple[list[tuple[object, ...]], object]]


def fill(strategy: str, names: list[str], rows: list[Row], batch: list[Row]) -> list[Row]:
    """Return the rows of a table after a batch, as dbt's strategy writes them."""
    if strategy == "append":
        return [*rows, *batch]
    place = names.index("at" if strategy == "insert_overwrite" else "id")
    replaced = {row[place] for row in batch}
    return [*(row for row in rows if row[place] not in replaced), *batch]


def rows_text(rows: list[Row], schema: StructType) -> str:
    """Return rows as a query that Spark answers without a job."""
    texts = (f"({', '.join('NULL' if cell is None else repr(str(cell)) for cell in row)})" for row in rows)
    nothing = f"({', '.join('NULL' for _ in schema.names)})"
    casts = ", ".join(f"CAST({field.name} AS {field.dataType.simpleString()}) AS {field.name}" for field in schema)
    values = f"VALUES {', '.join(texts) or nothing} AS t({', '.join(schema.names)})"
    return f"SELECT {casts} FROM {values}{'' if rows else ' WHERE FALSE'}"


def build(spark: SparkSession, forms: Forms, *days: str) -> Tables:
    """Return the tables that dbt's runs on these days make from nothing: rows and types, by plain queries of Spark."""
    views = {"raw.items": "raw_items", "shop.src": "src", "s.t": "own"}

    def query(text: str) -> DataFrame:
        for name, view in views.items():
            text = text.replace(name, view)
        return spark.sql(text)

    rows, schema = list[Row](), StructType()
    for day in days:
        values = ", ".join(f"({row})" for row in DAYS[day])
        query(f"SELECT * FROM VALUES {values} AS t(id, x, y, z, at)").createOrReplaceTempView("raw_items")
        query(forms.source).createOrReplaceTempView("src")
        schema = schema if rows else query(forms.first).schema
        query(rows_text(rows, schema)).createOrReplaceTempView("own")
        batch = query(join_forms(forms.first, forms.later, "s.t"))
        schema = batch.schema
        rows = fill(forms.strategy, schema.names, rows, batch.collect())
    query(rows_text(rows, schema)).createOrReplaceTempView("own")
    texts = ("SELECT * FROM s.t", *(text.partition("\n")[2] for text in forms.models()[2:]))
    frames = zip(TABLES, map(query, texts), strict=True)
    return {name: (sorted(map(tuple, frame.collect()), key=repr), frame.dtypes) for name, frame in frames}


def is_kept(changes: Mapping[str, Change], name: str) -> bool:
    """Return True if the rules say that a table is what a build from scratch would make."""
    change = changes.get(name)
    return change is None or not (change.recomputed or change.category is Category.FORWARD_ONLY)


def read(text: str) -> Model:
    made, _ = parse_model(text, "models/t.sql", Defaults(NOW))
    assert made is not None
    return made


@pytest.mark.parametrize("base", [BASES[0], BASES[5], BASES[8]], ids=str)
def test_what_neither_form_reads_keeps_all_and_an_edit_of_the_later_one_keeps_the_rows(base: Forms) -> None:
    rules = {}
    for name, edit in EDITS.items():
        changes = changes_by(edit, base)
        rules[name] = changes["s.t"].rule if "s.t" in changes and not is_kept(changes, "s.t") else ""

    kept = {name for name, rule in rules.items() if not rule}
    assert UNREAD - {*ASIDE} <= kept <= {*UNREAD, "the filter of the later form"}
    assert "a filter of the later form" in (told := {name for name, rule in rules.items() if rule == "later-form"})
    assert told <= LATER_EDITS


def changes_by(edit: Callable[[Forms], Forms], base: Forms) -> Mapping[str, Change]:
    raw = external("raw.items", "id x y z at")
    before, after = (project(raw, *map(read, forms.models())) for forms in (base, edit(base)))
    return change_of(before, after)


@pytest.mark.prove
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("base", BASES, ids=lambda base: f"{base.strategy} {[*LATER.values()].index(base.later)}")
def test_what_the_rules_keep_is_what_a_build_from_scratch_makes(engine: SparkEngine, base: Forms) -> None:
    spark, (day, last) = engine._shared.spark, DAYS
    before, once = build(spark, base, day, last), build(spark, base, last)
    verdicts, wrong = Counter[str](), list[str]()
    first = BASES.index(base) * SAMPLE
    for name in [[*EDITS][place % len(EDITS)] for place in range(first, first + SAMPLE)]:
        edit = EDITS[name]
        changes, edited = changes_by(edit, base), edit(base)
        after = build(spark, edited, day, last)
        rule = changes["s.t"].rule if "s.t" in changes else "no change"
        wrong += [f"{name}: {table}" for table in TABLES if is_kept(changes, table) and after[table] != before[table]]
        wrong += [f"{name}: first run"] if rule == "later-form" and build(spark, edited, last) != once else []
        needless = "s.t" in changes and changes["s.t"].recomputed and after == before
        verdicts[f"{rule}{' (same rows)' if needless else ''}"] += 1

    print(f"\nVERDICTS {base.strategy} {dict(verdicts)}")  # noqa: T201
    assert wrong == []
