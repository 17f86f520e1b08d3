"""Tables that were written long ago: what a test waits for instead of some weeks."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote, urlparse

from mergeplan.planner.engine.spark.engine import SparkEngine

WHEN = re.compile(r'"(deletionTimestamp|modificationTime)":(\d+)')


def later(engine: SparkEngine, days: int, *tables: str) -> datetime:
    """The time by which all that was done to these tables is so many days ago.

    Delta goes by its own clock, so that its files are made older; Iceberg goes by the time that it is told.
    """
    now = datetime.now(UTC)
    for name in tables:
        detail = dict(row[:2] for row in engine.fetch(f"DESCRIBE TABLE EXTENDED {name}").rows)
        if detail["Provider"] != "delta":
            return now + timedelta(days=days)
        _age(Path(unquote(urlparse(str(detail["Location"])).path)), days * 86_400)
    log = engine._sessions.shared.spark.sparkContext._jvm.org.apache.spark.sql.delta.DeltaLog
    log.clearCache()
    return now


def files(engine: SparkEngine, name: str) -> int:
    """How many data files a table has on disk, those of old versions too."""
    detail = dict(row[:2] for row in engine.fetch(f"DESCRIBE TABLE EXTENDED {name}").rows)
    return len([*Path(unquote(urlparse(str(detail["Location"])).path)).rglob("*.parquet")])


def _age(folder: Path, seconds: int) -> None:
    for path in [*folder.rglob("*.crc")]:
        path.unlink()  # of the texts that change below
    for path in [*folder.rglob("*.json"), *folder.rglob("*.parquet")]:
        at = path.stat().st_mtime - seconds
        if path.suffix == ".json":
            text = WHEN.sub(lambda match: f'"{match[1]}":{int(match[2]) - seconds * 1000}', path.read_text("utf-8"))
            path.write_text(text, "utf-8")
        os.utime(path, (at, at))
