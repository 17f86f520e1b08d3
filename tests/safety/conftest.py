"""A service at work on the sandbox, with a project whose prod is built, and an attacker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mergeplan.bot.records import PullRecord
from tests.bot.conftest import SHOP, Bench
from tests.safety.scene import Scene, doors, loot

CONFIG = """\
gateways:
  spark:
    connection: {type: spark, config: {spark.sql.shuffle.partitions: 2, spark.driver.memory: 700m}}
model_defaults: {dialect: spark, start: 2026-01-01}
"""
PROJECT = {
    "config.yaml": CONFIG,
    "models/items.sql": "MODEL (name shop.items, kind FULL);\n\n"
    "SELECT id, date'2026-01-01' + id AS day, 10 * id AS price FROM VALUES (1), (2), (3) AS t(id)\n",
    "models/secret.sql": "MODEL (name shop.secret, kind FULL);\n\nSELECT 7 AS id\n",
}


@dataclass(frozen=True)
class Attacked:
    """How an attacker's pull request ended: its record and comment, and what each attack got."""

    record: PullRecord
    comment: str
    got: dict[str, list[str]]
    doors: dict[str, str]
    before: dict[str, str]
    after: dict[str, str]

    @property
    def paths_changed(self) -> set[str]:
        """What stood before and is not the same now; the attacker's own tables are new."""
        return {name for name, text in self.before.items() if self.after.get(name) != text}


@dataclass
class Stage:
    """The service, and what is planted around it."""

    bench: Bench
    scene: Scene

    def attack(self, branch: str, files: dict[str, str] | None = None, **settings: object) -> Attacked:
        """An attacker's pull request, planned by a service with these settings."""
        self.bench.context.settings = self.bench.settings.model_copy(update=settings)
        before, known = self.files(), set(self.logs())
        number = self.bench.open(files or self.scene.files(), branch)
        self.bench.idle()
        said = "".join(path.read_text() for path in self.logs() if path not in known)
        return Attacked(
            self.bench.record(number), self.bench.plan(number), loot(said), doors(said), before, self.files()
        )

    def logs(self) -> list[Path]:
        """What planners have said, a file a run."""
        return sorted((self.bench.home / "logs").glob("*.log"))

    def files(self) -> dict[str, str]:
        """The files that were planted, the mirror's configuration (it has none) and prod's tables, as they are now."""
        warehouse = self.bench.home / "spark" / "warehouse"
        tables = {str(path): str(path.stat().st_mtime_ns) for path in warehouse.rglob("*.parquet")}
        assert tables
        mirror = self.scene.mirror.read_text() if self.scene.mirror.exists() else ""
        return self.scene.read_planted() | tables | {"mirror": mirror}


@pytest.fixture(name="stage")
def _stage(tmp_path: Path) -> Iterator[Stage]:
    folder = tmp_path
    bench = Bench(folder / "bench", planner_command=(), patience=900.0, warm=True)
    scene = Scene(folder / "scene", bench.settings.home, int(bench.url.rpartition(":")[2]))
    scene.mirror, scene.state = bench.home / "mirror.git" / "config", bench.settings.home / "bot.db"
    try:
        bench.populate(PROJECT)
        assert bench.context.inbox.prods.get(SHOP).revision == 1, bench.context.inbox.prods.get(SHOP).run_lines
        yield Stage(bench, scene)
    finally:
        bench.stop()
        scene.close()
