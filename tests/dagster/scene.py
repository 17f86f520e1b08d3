"""A project with a warm Spark, and a Dagster beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-dagster/bin/python"


@dataclass
class Scene:
    """A project with a warm Spark, and a Dagster beside it."""

    folder: Path
    at: str = "2026-01-02"
    rows: list[str] = field(default_factory=list)  # of raw.events

    @property
    def environ(self) -> dict[str, str]:
        """The environment variables of both."""
        return {**os.environ, "DAGSTER_HOME": str(self.folder / "home"), "DAGSTER_TELEMETRY": "0"}

    def mergeplan(self, *arguments: str) -> str:
        """A command, as somebody types it."""
        argv = [sys.executable, "-m", "mergeplan", *arguments]
        ran = subprocess.run(
            argv, cwd=self.folder / "shop", env=self.environ, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def fetch(self, sql: str) -> list[list[Any]]:
        """The rows of a query."""
        return json.loads(self.mergeplan("fetchdf", sql, "-o", "json"))["rows"]  # type: ignore[no-any-return]

    def put(self, *rows: str, instead: bool = False) -> None:
        """Rows that arrive in raw.events; `instead` of those that are there."""
        self.rows = [*rows] if instead else [*self.rows, *rows]
        self.mergeplan("fetchdf", "CREATE DATABASE IF NOT EXISTS raw")
        self.mergeplan("fetchdf", "DROP TABLE IF EXISTS raw.events")
        values = ", ".join(f"({row})" for row in self.rows)
        self.mergeplan(
            "fetchdf", f"CREATE TABLE raw.events USING parquet AS SELECT * FROM VALUES {values} t(id, day, price)"
        )

    def dagster(self, do: str, **request: Any) -> dict[str, Any]:
        """What Dagster does and says; see inside.py."""
        mark = {"mark": str(self.folder / "mark")} if request.pop("killed", False) else {}
        resource = {"project": str(self.folder / "shop"), "python": sys.executable, "execution_time": self.at} | mark
        request = {"do": do, "mergeplan": resource, "deployment": str(self.folder / "deployment.json")} | request
        argv = [PYTHON, "-P", "-W", "ignore", str(Path(__file__).parent / "inside.py"), json.dumps(request)]
        ran = subprocess.run(argv, env=self.environ, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr[-4000:]
        return json.loads(ran.stdout)  # type: ignore[no-any-return]

    def totals(self) -> dict[str, int]:
        """The rows of the last model, by day."""
        return {str(day): total for day, total in self.fetch("SELECT day, total FROM shop.total ORDER BY day")}


@contextmanager
def open_scene(folder: Path, files: Mapping[str, str]) -> Iterator[Scene]:
    """A project of these files with a warm Spark; nothing is promoted yet."""
    scene = Scene(folder)
    (folder / "home").mkdir()
    (folder / "home/dagster.yaml").write_text("telemetry: {enabled: false}\n")
    for name, text in files.items():
        path = folder / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    argv = [sys.executable, "-m", "mergeplan", "warm"]
    with subprocess.Popen(argv, cwd=folder / "shop", env=scene.environ, stdout=subprocess.PIPE, text=True) as warm:
        try:
            assert warm.stdout is not None and "ready" in warm.stdout.readline()
            yield scene
        finally:
            warm.terminate()
