"""Forward-only changes, effective dates, restatements and merges, against a build of the same text from scratch.

`make prove-lakehouse` runs it on each table format.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.conftest import FORMAT
from tests.planner.cli.conftest import CommandLine, Ran
from tests.planner.shop import FILES, rows

pytestmark = pytest.mark.prove

STRETCH = "WHERE at BETWEEN @start_date AND @end_date"
DAILY = f"SELECT id, at, price AS price FROM raw.sales {STRETCH}"
MODELS = {
    "daily": f"MODEL (name SHOP.daily, kind INCREMENTAL_BY_TIME_RANGE (time_column at));\n{DAILY}",
    "latest": f"""MODEL (name SHOP.latest, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id, batch_size 1));
SELECT id, MAX(at) AS at, SUM(price) AS price FROM SHOP.daily {STRETCH} GROUP BY id""",
    "total": "MODEL (name SHOP.total, kind FULL);\nSELECT at, SUM(price) AS price FROM SHOP.daily GROUP BY at",
}
Rows = dict[str, list[tuple[object, ...]]]  # of each model, sorted


def double_times(times: int) -> dict[str, str]:
    """The models, of which the first computes so many times the price."""
    return {**MODELS, "daily": MODELS["daily"].replace("price AS", f"price * {times} AS")}


class Shop:
    """A project over the table `raw.sales`, and others beside it that are built from scratch."""

    def __init__(self, folder: Path, engine: SparkEngine) -> None:
        self._folder, self.engine, self._others = folder, engine, 0
        self.mergeplan = self._project("shop", MODELS)
        self.engine.fetch("CREATE SCHEMA raw")
        self.engine.fetch("CREATE TABLE raw.sales (id INT, at DATE, price INT) USING parquet")
        for day in range(1, 9):
            self.sell((1, day), (1 + day % 3, day))

    def sell(self, *sales: tuple[int, int]) -> None:
        """Add rows of these ids and days of January, of a price that no other has."""
        values = ", ".join(f"({id_}, DATE '2026-01-{day:02}', {10 * day + id_})" for id_, day in sales)
        self.engine.fetch(f"INSERT INTO raw.sales VALUES {values}")

    def do(self, models: Mapping[str, str], *arguments: str, day: int) -> Ran:
        """Run a command with these models at five o'clock of a day of January."""
        self._write(self.mergeplan, "shop", models)
        return self._run(self.mergeplan, *arguments, day=day)

    def view_rows(self, schema: str = "shop") -> Rows:
        """Read what the views of a schema show."""
        columns = {"daily": "id, at, price", "latest": "id, at, price", "total": "at, price"}
        return {
            name: sorted(rows(self.engine, f"SELECT {names} FROM {schema}.{name}"), key=repr)
            for name, names in columns.items()
        }

    def build(self, models: Mapping[str, str], *, day: int) -> Rows:
        """Build these models from scratch in a project of their own; the rows that it shows."""
        self._others += 1
        schema = f"scratch{self._others}"
        self._run(self._project(schema, models), "plan", "--auto-apply", day=day)
        return self.view_rows(schema)

    def _project(self, schema: str, models: Mapping[str, str]) -> CommandLine:
        mergeplan = CommandLine(self._folder / schema, self.engine)
        form = f", table_format: {FORMAT}}}" if FORMAT else "}"
        mergeplan.write("config.yaml", FILES["config.yaml"].replace("2026-01-01}", f"2026-01-01{form}"))
        mergeplan.write("external_models.yaml", "- name: raw.sales\n  columns: {id: int, at: date, price: int}\n")
        self._write(mergeplan, schema, models)
        return mergeplan

    def _write(self, mergeplan: CommandLine, schema: str, models: Mapping[str, str]) -> None:
        for name, text in models.items():
            mergeplan.write(f"models/{name}.sql", text.replace("SHOP", schema))

    def _run(self, mergeplan: CommandLine, *arguments: str, day: int) -> Ran:
        ran = mergeplan(*arguments, "--execution-time", f"2026-01-{day:02} 05:00:00", "--output", "json")
        assert ran.code == 0, ran.out + ran.err
        return ran


@pytest.fixture
def shop(tmp_path: Path, engine: SparkEngine) -> Shop:
    return Shop(tmp_path, engine)


def since(day: int, before: Rows, after: Rows) -> list[tuple[object, ...]]:
    """The rows of `daily`: of days before this one as the first has them, from then on as the second."""
    early = [row for row in before["daily"] if str(row[1]) < f"2026-01-{day:02}"]
    return sorted([*early, *(row for row in after["daily"] if str(row[1]) >= f"2026-01-{day:02}")], key=repr)


def test_a_breaking_change_after_a_forward_only_one_computes_all_rows_anew(shop: Shop) -> None:
    shop.do(MODELS, "plan", "--auto-apply", day=4)
    shop.do(double_times(2), "plan", "--forward-only", "--auto-apply", day=4)
    shop.do(double_times(2), "run", day=6)
    assert shop.view_rows()["daily"] == since(4, shop.build(MODELS, day=6), shop.build(double_times(2), day=6))

    shop.do(double_times(3), "plan", "dev", "--auto-apply", day=6)
    shop.do(double_times(3), "plan", "--auto-apply", day=6)
    assert shop.view_rows() == shop.build(double_times(3), day=6)

    shop.do(
        double_times(2), "plan", "--auto-apply", day=6
    )  # the table of the forward-only change has rows of another text
    assert shop.view_rows() == shop.build(double_times(2), day=6)


def test_rows_from_an_effective_date_on_are_of_the_new_text(shop: Shop) -> None:
    shop.do(MODELS, "plan", "--auto-apply", day=5)
    looks = ("--forward-only", "--effective-from", "2026-01-03", "--auto-apply")
    shop.do(double_times(2), "plan", "dev", *looks, day=5)
    before, after = (shop.build(models, day=5) for models in (MODELS, double_times(2)))
    assert shop.view_rows("shop__dev")["daily"] == since(3, before, after)
    assert shop.view_rows() == before

    merged = shop.do(double_times(2), "plan", *looks, day=5).result
    assert merged["promotion"]["spark_jobs"] == 0
    assert shop.view_rows()["daily"] == since(3, before, after)
    shop.do(double_times(2), "run", day=7)
    assert shop.view_rows()["daily"] == since(3, before, shop.build(double_times(2), day=7))


def test_late_rows_come_with_a_restatement_of_their_days_alone(shop: Shop) -> None:
    shop.do(MODELS, "plan", "--auto-apply", day=4)
    before = shop.build(MODELS, day=4)
    shop.sell((2, 2), (4, 2), (2, 3))
    shop.do(MODELS, "run", day=5)
    whole = shop.build(MODELS, day=5)
    assert shop.view_rows()["daily"] == since(4, before, whole)

    second = ("--start", "2026-01-02", "--end", "2026-01-02")
    shop.do(MODELS, "plan", "--restate-model", "shop.daily", *second, "--auto-apply", day=5)
    late = [row for row in whole["daily"] if str(row[1]) != "2026-01-03"]
    assert shop.view_rows()["daily"] == sorted(
        [*late, *(r for r in before["daily"] if str(r[1]) == "2026-01-03")], key=repr
    )

    shop.do(MODELS, "plan", "--restate-model", "raw.sales", "--auto-apply", day=5)
    assert shop.view_rows() == whole


def test_a_restatement_in_an_environment_leaves_prod_alone_and_is_what_a_merge_shows(shop: Shop) -> None:
    shop.do(MODELS, "plan", "--auto-apply", day=4)
    before = shop.view_rows()
    shop.do(double_times(2), "plan", "dev", "--auto-apply", day=4)
    shop.sell((2, 2), (4, 3))

    shop.do(double_times(2), "plan", "dev", "--restate-model", "shop.daily", "--auto-apply", day=4)
    assert (shop.view_rows(), shop.view_rows("shop__dev")) == (before, shop.build(double_times(2), day=4))
    merged = shop.do(double_times(2), "plan", "--auto-apply", day=4).result
    assert merged["plan"]["virtual"]
    assert shop.view_rows() == shop.build(double_times(2), day=4)


def test_a_restatement_of_prod_reaches_what_an_environment_has_of_its_own(shop: Shop) -> None:
    shop.do(MODELS, "plan", "--auto-apply", day=4)
    shop.do(double_times(2), "plan", "dev", "--auto-apply", day=4)
    shop.sell((2, 2), (4, 3))

    shop.do(MODELS, "plan", "--restate-model", "raw.sales", "--auto-apply", day=4)
    assert shop.view_rows() == shop.build(MODELS, day=4)
    shop.do(double_times(2), "plan", "--auto-apply", day=4)
    assert shop.view_rows() == shop.build(double_times(2), day=4)
