"""One service at work on the sandbox for all of these tests, with a project whose prod is built, and an attacker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.records import PullRecord
from tests.bot.conftest import SHOP, Bench
from tests.safety.scene import Scene, loot

CONFIG = """\
gateways:
  spark:
    connection: {type: spark, config: {spark.sql.shuffle.partitions: 2, spark.driver.memory: 700m}}
model_defaults: {dialect: spark, start: 2026-01-01}
"""
PROJECT = {
    "config.yaml": CONFIG,
    "models/orders.sql": "MODEL (name shop.orders, kind FULL);\n\nSELECT 1 AS id\n",
}


@dataclass(frozen=True)
class Attacked:
    """How an attacker's pull request ended: its record and comment, and what each attack got."""

    record: PullRecord
    comment: str
    got: dict[str, list[str]]
    before: dict[str, str]
    after: dict[str, str]


@dataclass
class Stage:
    """The service, and what is planted around it."""

    bench: Bench
    scene: Scene

    def attack(self, branch: str, files: dict[str, str] | None = None, **settings: object) -> Attacked:
        """An attacker's pull request, planned by a service with these settings."""
        self.bench.desk.settings = self.bench.settings.model_copy(update=settings)
        before, known = self.files(), set(self.logs())
        number = self.bench.open(files or self.scene.files(), branch)
        self.bench.idle()
        said = "".join(path.read_text() for path in self.logs() if path not in known)
        return Attacked(self.bench.record(number), self.bench.plan(number), loot(said), before, self.files())

    def logs(self) -> list[Path]:
        """What planners have said, a file a run."""
        return sorted((self.bench.home / "logs").glob("*.log"))

    def files(self) -> dict[str, str]:
        """The files that were planted, the mirror's configuration and prod's tables, as they are now."""
        warehouse = self.bench.home / "spark" / "warehouse"
        tables = {str(path): str(path.stat().st_mtime_ns) for path in warehouse.rglob("*.parquet")}
        assert tables
        return self.scene.written() | tables | {"mirror": self.scene.mirror.read_text()}


@pytest.fixture(scope="session", name="stage")
def _stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("safety")
    bench = Bench(folder / "bench", planner_command=(), patience=400.0)
    scene = Scene(folder / "scene", bench.settings.home, int(bench.url.rpartition(":")[2]))
    scene.mirror, scene.state = bench.home / "mirror.git" / "config", bench.settings.home / "bot.db"
    try:
        bench.populate(PROJECT)
        assert bench.desk.inbox.prod(SHOP).revision == 1, bench.desk.inbox.prod(SHOP).said
        yield Stage(bench, scene)
    finally:
        bench.stop()
        scene.close()


@pytest.fixture(scope="session", name="isolated")
def _isolated(stage: Stage) -> Attacked:
    """The attacker's pull request as a service plans it."""
    return stage.attack("attack")


@pytest.fixture(scope="session", name="loose")
def _loose(stage: Stage, isolated: Attacked) -> Attacked:
    """The same where the operator wants no isolation; it comes last, for it spoils what was planted."""
    return stage.attack("attack-again", isolation="none")
