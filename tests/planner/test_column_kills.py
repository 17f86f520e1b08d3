"""Forward-only edits of columns, killed between any two statements: prod has all rows, in the old columns or the new.

A model loses, gets, widens and reorders columns while prod runs. Days before an edit have NULL in a column that came
later. MERGEPLAN_SEQUENCES says how many sequences there are, MERGEPLAN_SEED where the random choices begin.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.engine import SparkEngine, open_engine
from tests.conftest import FORMAT
from tests.planner.killing import Step, Zygote, warm_spark

pytestmark = pytest.mark.prove

SEQUENCES = int(os.environ.get("MERGEPLAN_SEQUENCES", "2"))
SEED = int(os.environ.get("MERGEPLAN_SEED", "9"))
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
TYPES = {  # a column may get the next type of its list
    "a": ("int", "bigint", "decimal(20,0)"),
    "b": ("string",),
    "c": ("float", "double"),
    "d": ("decimal(5,2)", "decimal(9,2)", "decimal(12,4)"),
}
CONFIG = f"""
gateways:
  local:
    connection: {{type: spark, concurrent_tasks: 2}}
default_gateway: local
model_defaults: {{dialect: spark, start: 2026-01-01{f", table_format: {FORMAT}" if FORMAT else ""}}}
"""
DAYS = "SELECT explode(sequence(DATE '2026-01-01', DATE '2026-12-31')) AS day"
POLICY = "time_column day, batch_size 2, forward_only true, on_destructive_change allow"
MODEL = "MODEL (name {schema}.t, kind INCREMENTAL_BY_TIME_RANGE ({policy}));\nSELECT day, {columns} FROM ({days})"
VIEW = "MODEL (name {schema}.v, kind VIEW);\nSELECT * FROM {schema}.t"
Columns = dict[str, str]  # name -> type, in the order of the query


@dataclass
class Shop:
    """A project, the columns of its files, and what its prod should show."""

    schema: str
    folder: Path
    columns: Columns
    days: int = 3
    shown: Columns = field(default_factory=dict)
    rows: dict[int, frozenset[str]] = field(default_factory=dict)  # day -> the columns that have a value

    @property
    def at(self) -> tuple[str, str]:
        return "--execution-time", str(FIRST + timedelta(days=self.days, hours=5))[:19]

    def write(self) -> None:
        values = ", ".join(f"cast(day(day) AS {kind}) AS {name}" for name, kind in self.columns.items())
        model = MODEL.format(schema=self.schema, policy=POLICY, columns=values, days=DAYS)
        (self.folder / "models").mkdir(parents=True, exist_ok=True)
        (self.folder / "config.yaml").write_text(f"project: {self.schema}\n{CONFIG}")
        (self.folder / "models/t.sql").write_text(f"{model} WHERE day BETWEEN @start_date AND @end_date")
        (self.folder / "models/v.sql").write_text(VIEW.format(schema=self.schema))

    def fill(self) -> None:
        """Let prod hold all days that are due: each new one by the query that it shows."""
        for day in range(1, self.days + 1):
            self.rows.setdefault(day, frozenset(self.shown))

    def promote(self) -> None:
        """Let prod show the columns of the files; where a table is copied, values of dropped columns are gone."""
        if FORMAT:
            self.rows = {day: names & self.columns.keys() for day, names in self.rows.items()}
        self.shown = dict(self.columns)
        self.fill()


@dataclass
class Scene:
    """A warm Spark, and the verbs on it that are killed."""

    folder: Path
    zygote: Zygote
    engine: SparkEngine
    choose: random.Random

    def call(self, shop: Shop, *verb: str, before: Columns | None = None) -> None:
        """Carry out a verb, after some attempts that are killed; `before` is what prod may show until then."""
        environ = {"MERGEPLAN_HOME": str(self.folder / "home"), "MERGEPLAN_PROJECT": shop.schema}
        for _ in range(self.choose.randint(0, 2) if before else 0):
            step = Step("Sessions.run", self.choose.randint(1, 40), self.choose.random() < 0.5)
            ended = self.zygote.call((*verb, *shop.at), shop.folder, environ, step=step)
            assert ended.was_killed or ended.code == 0, (verb, step, str(ended))
            assert self.show_columns(shop, "t") in (before, shop.columns), (verb, step)
            self.engine.fetch(f"SELECT * FROM {shop.schema}.v")
        ended = self.zygote.call((*verb, *shop.at), shop.folder, environ)
        assert ended.code == 0, (verb, str(ended))

    def show_columns(self, shop: Shop, view: str) -> Columns:
        rows = self.engine.fetch(f"DESCRIBE {shop.schema}.{view}").rows
        return {str(row[0]): str(row[1]) for row in rows if row[0] != "day"}

    def check(self, shop: Shop, done: str) -> None:
        assert [self.show_columns(shop, view) for view in "tv"] == [shop.shown] * 2, done
        names = ", ".join(f"cast({name} AS int)" for name in shop.shown)
        rows = self.engine.fetch(f"SELECT day(day), {names} FROM {shop.schema}.t ORDER BY day").rows
        expected = [(day, *(day if name in had else None for name in shop.shown)) for day, had in shop.rows.items()]
        assert list(rows) == expected, done


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder, zygote = tmp_path_factory.mktemp("columns"), Zygote()
    with warm_spark(folder / "home"):
        engine = open_engine(Connection(), folder / "home", wait=0)
        yield Scene(folder, zygote, engine, random.Random(SEED))  # noqa: S311
        engine.close()
    zygote.close()


@pytest.mark.parametrize("number", range(SEQUENCES))
def test_columns_come_go_and_widen_without_a_lost_row(scene: Scene, number: int) -> None:
    shop = Shop(f"shop{number}", scene.folder / f"shop{number}", {"a": "int", "b": "string"})
    shop.write()
    scene.call(shop, "plan", "--auto-apply")
    shop.promote()
    for count in range(4):
        before = dict(shop.columns)
        shop.columns = edit_columns(before, scene.choose)
        shop.write()
        done = f"sequence {number}, edit {count}: {before} -> {shop.columns}"
        scene.call(shop, "plan", "dev", "--auto-apply", before=before)
        for _ in range(scene.choose.randint(0, 1)):
            shop.days += 1
            scene.call(shop, "run", before=before)
            shop.fill()
            scene.check(shop, f"{done}, before the merge")
        scene.call(shop, "plan", "--auto-apply", before=before)
        shop.promote()
        scene.check(shop, done)


def edit_columns(columns: Columns, choose: random.Random) -> Columns:
    """Return columns of which one came, went or was widened, or whose order is another one."""
    widened = {
        name: TYPES[name][TYPES[name].index(kind) + 1] for name, kind in columns.items() if kind != TYPES[name][-1]
    }
    # Files of parquet keep the values of a dropped column, and their type.
    added = {name: kinds[0] for name, kinds in TYPES.items() if name not in columns and FORMAT}
    new = [{**columns, name: kind} for name, kind in (*widened.items(), *added.items())]
    new += [{name: kind for name, kind in columns.items() if name != gone} for gone in columns if len(columns) > 1]
    order = list(columns)
    choose.shuffle(order)
    return choose.choice([*new, {name: columns[name] for name in order}])
