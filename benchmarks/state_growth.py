"""How the state grows: a hundred promotions of one changed model of a thousand, and what the janitor forgets of them.

python -m benchmarks.state_growth
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.projects import write_project
from benchmarks.promoted import promote
from mergeplan.planner.state.environments import Cause
from mergeplan.planner.state.store import StateStore

MODELS = 1000
PROMOTIONS = 100


def size(file: Path) -> int:
    """Bytes of the database once nothing waits in its journal."""
    return sum(path.stat().st_size for path in file.parent.glob(f"{file.name}*"))


def promote_again(store: StateStore, number: int) -> float:
    """Promote another version of one model; the CPU seconds of it."""
    began = time.process_time()
    old = store.environments.get("prod")
    name = sorted(old.snapshots)[number % len(old.snapshots)]
    changed = replace(old.snapshots[name], version=f"{number:012x}", stored="")
    store.tables.register(changed.table, ())
    new = replace(old, snapshots={**old.snapshots, name: changed})
    with store.leases.hold("prod", "benchmark") as lease:
        store.promotions.finish(lease, store.promotions.begin(lease, old, new, Cause()))
    return time.process_time() - began


def main() -> None:
    """Print the sizes and their ratios."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        os.environ["MERGEPLAN_CACHE"] = str(root / "cache")
        write_project(root, MODELS)
        promote(root)
        file = root / ".mergeplan" / "state.db"
        with closing(StateStore(f"sqlite:///{file}")) as store:
            first = size(file)
            seconds = [promote_again(store, number) for number in range(PROMOTIONS)]
        last = size(file)
        with closing(StateStore(f"sqlite:///{file}")) as store:
            gone = store.retention.forget(datetime.now(UTC))
    a_piece, whole = (last - first) / PROMOTIONS, first
    print(f"{MODELS:,} models, {PROMOTIONS} promotions of one changed model each")
    print(f"the first promotion    {whole / 1024:10,.0f} KB")
    print(f"each further one       {a_piece / 1024:10,.1f} KB, {a_piece / whole:.4f} of the first")
    print(f"CPU of one             {sorted(seconds)[len(seconds) // 2]:10.3f} s (median)")
    print(f"forgotten afterwards   {gone.revisions:10,} revisions, {gone.snapshots:,} snapshots")


if __name__ == "__main__":
    main()
