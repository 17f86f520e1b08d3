"""How long the files of a commit take on a large repository: all of them anew, and by difference. Prints ratios.

make bench-checkout                     5,000 files
python -m benchmarks.checkout 20000
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bot.git.checkout import Checkout
from bot.git.objects import reading
from bot.git.work_tree import WorkTree
from bot.sandbox.server import Sandbox

SHOP, ROUNDS = "ann/shop", 5


def project(size: int) -> dict[str, str]:
    """Models of a kilobyte each, a hundred to a folder."""
    text = "SELECT\n" + "".join(f"  source.column_{n} AS column_{n},\n" for n in range(30)) + "  1 AS one\n"
    return {f"models/layer{n // 100}/m{n}.sql": f"-- {n}\n{text}FROM raw.t{n} AS source\n" for n in range(size)}


def cpu() -> float:
    """CPU seconds so far, of git too."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def measured(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds and CPU seconds."""
    began, used = time.perf_counter(), cpu()
    work()
    return time.perf_counter() - began, cpu() - used


def main(size: int) -> None:
    """The same commits by turns: into a new folder, and into the one before."""
    with tempfile.TemporaryDirectory() as scratch, Sandbox(Path(scratch) / "github") as github:
        github.add_user("ann")
        github.create_repository(SHOP, project(size))
        checkout = Checkout(Path(scratch) / "home", SHOP, github.clone_url(SHOP), lambda: "")
        fetched = measured(lambda: checkout.fetch("main"))
        print(f"{size} files: first fetch {fetched[0]:.2f} s, {fetched[1]:.2f} CPU s")
        kept, ratios = WorkTree(Path(scratch) / "kept"), []
        objects_of = Path(scratch) / "home" / "mirror.git" / "objects"
        for turn in range(ROUNDS):
            github.commit(SHOP, "main", {"models/layer0/m7.sql": f"SELECT {turn}\n"}, "Change", author="ann")
            again = measured(lambda: checkout.fetch("main"))
            oid = checkout.tree(checkout.head("main"))
            with reading(objects_of) as objects:
                new = measured(partial(WorkTree(Path(scratch) / f"new{turn}").bring, objects, oid))
                reused = measured(partial(kept.bring, objects, oid))
            ratios.append((new[0] / reused[0], new[1] / reused[1]) if turn else (0.0, 0.0))
            print(
                f"  fetch of a commit {again[0]:.2f} s {again[1]:.2f} CPU s   "
                f"all files {new[0]:.2f} s {new[1]:.2f} CPU s   by difference {reused[0]:.2f} s {reused[1]:.2f} CPU s"
            )
        times, uses = (statistics.median(each) for each in zip(*ratios[1:], strict=True))
        print(f"all files against the difference: time x {times:.1f}, CPU x {uses:.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
