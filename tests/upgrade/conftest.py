"""A release's databases, loaded once into SQLite and once into PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.planner.conftest import new_postgresql, postgresql  # noqa: F401 - fixtures
from tests.upgrade.dump import load

RELEASES = sorted(path for path in Path(__file__).parent.iterdir() if (path / "planner").is_dir())


@dataclass(frozen=True)
class Release:
    """The databases that a release left, at one address, as its installation had them."""

    folder: Path
    url: str

    def load(self, package: str, replaced: dict[str, str] | None = None) -> None:
        """Make the tables of the planner or of the bot, with their rows."""
        load(self.url, self.folder / package, replaced)


@pytest.fixture(name="release", params=RELEASES, ids=lambda path: path.name)
def _release(request: pytest.FixtureRequest, database_url: str) -> Release:
    return Release(request.param, database_url)


@pytest.fixture(name="database_url", params=["sqlite", "postgresql"])
def _database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/shared.db"
    make: Callable[[], str] = request.getfixturevalue("new_postgresql")
    return make()


@pytest.fixture(name="project")
def _project(release: Release, tmp_path: Path) -> Path:
    """The project as the release last promoted it to prod."""
    return Path(shutil.copytree(release.folder / "planner/project", tmp_path / "project"))
