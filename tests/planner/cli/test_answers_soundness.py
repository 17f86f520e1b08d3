"""After random edits, moves of files, of the state and of the clock, a plan with what it remembers is the plan without.

MERGEPLAN_CASES says how many (`make prove`: 2,000), MERGEPLAN_SEED with which seed they begin.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from benchmarks.promoted import promote
from mergeplan.planner.cache import file_hashes, folder_looks
from mergeplan.planner.cli import answers
from mergeplan.planner.cli import workspace as command_line
from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.session import workspace as session
from tests.planner.cli.test_answers import shown
from tests.planner.project.test_loader import CONFIG, project_of

pytestmark = pytest.mark.sampled

SEED = int(os.environ.get("MERGEPLAN_SEED", "1"))
CASES = int(os.environ.get("MERGEPLAN_CASES", "30"))
STEPS = 12  # of one case
TICK = 10_000_000  # nanoseconds: a file is old soon
CALLS = (("plan", "--no-prompts"), ("plan", "dev", "--no-prompts"), ("plan", "--no-prompts", "-o", "json"))
LOADED = "kind INCREMENTAL_BY_TIME_RANGE (time_column ds)"
TIMED = f"MODEL (name s.c, {LOADED}, cron '{{}}', start '{{}}');\nSELECT id, ds FROM s.a"
# What each file may say: mostly texts of one size.
TEXTS: dict[str, list[str]] = {
    "config.yaml": [f"{CONFIG}variables: {{level: {value}}}\n" for value in ("1", "2", "\"{{ env_var('SHLVL') }}\"")],
    "external_models.yaml": [
        f"- name: raw.events\n  columns: {{id: {kind}, ds: string}}\n" for kind in ("int", "long")
    ],
    "models/a.sql": [
        f"MODEL (name s.a, kind FULL);\nSELECT {columns} FROM raw.events WHERE id > @VAR('level')"
        for columns in ("id, ds", "ds, id")
    ],
    "models/b.sql": [f"MODEL (name s.b, kind VIEW);\nSELECT id FROM s.a WHERE ds > '{text}'" for text in "xy"],
    "models/c.sql": [TIMED.format("@hourly", "2026-11-20"), TIMED.format("*/5 * * * *", "3 days ago")],
    "models/d.sql": [f"MODEL (name s.d, kind SEED (path '../seeds/{name}.csv'), columns (id int));" for name in "st"],
    "macros/m.sql": [f"{{% macro level() %}}{number}{{% endmacro %}}" for number in "12"],
    "models/e.sql": ["MODEL (name s.e, kind FULL);\nJINJA_QUERY_BEGIN;\nSELECT {{ level() }} AS x\nJINJA_END;"],
    "seeds/s.csv": ["id\n1\n", "id\n2\n"],
    "seeds/t.csv": ["id\n1\n", "id\n3\n"],
}
STATE = (
    "UPDATE plans SET status = 'stale'",
    "DELETE FROM plans",
    "DELETE FROM intervals WHERE rowid IN (SELECT rowid FROM intervals LIMIT 1)",
    "UPDATE environments SET expires_at = '2026-01-01 00:00:00.000000'",
)


class Bench:
    """A project with what changes it; each change is drawn from `rng`."""

    def __init__(self, folder: Path, rng: random.Random, patched: pytest.MonkeyPatch) -> None:
        self.folder, self.rng, self._patched = folder, rng, patched
        self.root = project_of(folder / "project", {name: texts[0] for name, texts in TEXTS.items()})
        self.shift = timedelta()
        self._backups: list[Path] = []

    def change(self) -> str:
        """Change one thing, and say what."""
        act: Callable[[], object] = self.rng.choice(
            (self.edit, self.edit, self.replace, self.swap, self.link, self.remove, self.wait, self.turn_clock,
             self.set_variable, self.promote, self.write_state, self.back_up, self.restore)
        )  # fmt: skip
        act()
        return act.__name__

    def edit(self) -> None:
        """Another text in place, as often with the time of the old one."""
        path, text = self._draw()
        before = path.stat() if path.exists() else None
        path.write_text(text)
        if before and self.rng.random() < 0.5:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def replace(self) -> None:
        """Another file under the name, with the time of the old one."""
        path, text = self._draw()
        (draft := path.with_name(".draft")).write_text(text)
        if path.exists():
            shutil.copystat(path, draft)
        draft.replace(path)

    def swap(self) -> None:
        """Two files take each other's name: nothing of either changes but that."""
        one, other, aside = (self.root / f"seeds/{name}.csv" for name in ("s", "t", "aside"))
        one.rename(aside)
        other.rename(one)
        aside.rename(other)

    def link(self) -> None:
        """A link to a file elsewhere, or a second name of it, which is edited there."""
        path, text = self._draw()
        target = self.folder / path.name
        target.write_text(text)
        path.unlink(missing_ok=True)
        self.rng.choice((path.symlink_to, path.hardlink_to))(target)
        target.write_text(self.rng.choice(TEXTS[path.relative_to(self.root).as_posix()]))

    def remove(self) -> None:
        """A model fewer."""
        (self.root / "models/b.sql").unlink(missing_ok=True)

    def wait(self) -> None:
        """Until what was written is old."""
        time.sleep(2 * TICK / 10**9)

    def turn_clock(self) -> None:
        """Another time, also an earlier one."""
        self.shift += timedelta(seconds=self.rng.choice((1, 60, 299, 3600, 86_400, -1, -3600)))

    def set_variable(self) -> None:
        """A variable of the environment, which one text of config.yaml reads."""
        self._patched.setenv("SHLVL", self.rng.choice("12"))

    def promote(self) -> None:
        """All that is in the project comes to prod."""
        with suppress(MergeplanError):
            promote(self.root)

    def write_state(self) -> None:
        """Another process writes to the state."""
        with closing(sqlite3.connect(self._state)) as state, suppress(sqlite3.OperationalError):
            state.execute(self.rng.choice(STATE))
            state.commit()

    def back_up(self) -> None:
        """A copy of the state."""
        backup = self.folder / f"backup-{len(self._backups)}"
        copy_state(self._state, backup)
        self._backups.append(backup)

    def restore(self) -> None:
        """A copy in the state's place."""
        if self._backups:
            for path in self._state.parent.glob("state.db*"):
                path.unlink()
            shutil.copy2(self.rng.choice(self._backups), self._state)

    def plan_without_memory(self, call: Sequence[str]) -> str:
        """What a plan says that remembers nothing, over a copy of the state."""
        home = self.folder / "home"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        copy_state(self._state, home / "state.db")
        with self._patched.context() as patched:
            patched.setenv("MERGEPLAN_HOME", str(home))
            patched.setenv("MERGEPLAN_CACHE", "off")
            return shown(self.root, call)

    def _draw(self) -> tuple[Path, str]:
        name = self.rng.choice(list(TEXTS))
        return self.root / name, self.rng.choice(TEXTS[name])

    @property
    def _state(self) -> Path:
        return self.root / ".mergeplan/state.db"


def copy_state(state: Path, target: Path) -> None:
    """All that was committed, in one file."""
    with closing(sqlite3.connect(state)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


@pytest.mark.parametrize("seed", range(SEED, SEED + max(CASES // 10, 3)))
def test_a_plan_that_may_be_remembered_is_the_plan_that_is_made_anew(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, random.Random(seed), monkeypatch)  # noqa: S311 # reproducible, not secret

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + bench.shift

    for module in (answers, command_line, session):
        monkeypatch.setattr(module, "datetime", Clock)
    for module in (folder_looks, file_hashes):
        monkeypatch.setattr(module, "TICK", TICK)
    monkeypatch.setenv("MERGEPLAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SHLVL", "1")
    shown(bench.root)
    changes: list[str] = []
    for _ in range(STEPS):
        changes += [bench.change() for _ in range(bench.rng.choice((0, 1, 1, 1, 3)))]
        call = bench.rng.choice(CALLS)

        assert shown(bench.root, call) == bench.plan_without_memory(call), f"seed {seed}: {changes}"
