"""What the files of a commit take on a large repository: to fetch, to write anew, and by difference. Prints ratios.

Its history holds a large file beside the project that was changed again and again.

make bench-checkout                     5,000 files
python -m benchmarks.checkout 20000
"""

from __future__ import annotations

import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mergeplan.bot.git.checkout import Checkout
from mergeplan.bot.git.objects import ObjectMemory, Objects, open_objects
from mergeplan.bot.git.work_tree import WorkTree
from mergeplan_sandbox.server import Sandbox

SHOP, ROUNDS, HISTORY, LARGE = "ann/shop", 5, 20, 2_000_000


def project(size: int) -> dict[str, str]:
    """Models of a kilobyte each, a hundred to a folder."""
    text = "SELECT\n" + "".join(f"  source.column_{n} AS column_{n},\n" for n in range(30)) + "  1 AS one\n"
    return {f"models/layer{n // 100}/m{n}.sql": f"-- {n}\n{text}FROM raw.t{n} AS source\n" for n in range(size)}


def cpu() -> float:
    """CPU seconds so far, of git too."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def measure(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds and CPU seconds."""
    began, used = time.perf_counter(), cpu()
    work()
    return time.perf_counter() - began, cpu() - used


def read(folder: Path, work: Callable[[Objects, str], None], oid: str) -> None:
    """Does the work with a git of its own, whose CPU counts when it has ended."""
    with open_objects(folder, ObjectMemory()) as objects:
        work(objects, oid)


def one_by_one(place: Path, objects: Objects, oid: str) -> None:
    """The plain way: one object after the other is asked for, and written into a new folder."""
    for path, entry in objects.differing(None, oid):
        file = place / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(objects.get(entry.oid, "blob"))


def repository(github: Sandbox, size: int) -> str:
    """A repository with a history; its address."""
    github.add_user("ann")
    github.create_repository(SHOP, project(size))
    for turn in range(HISTORY):
        large = random.Random(turn).randbytes(LARGE).hex()  # noqa: S311
        github.commit(SHOP, "main", {"docs/large.svg": large}, "Change", author="ann")
    return github.clone_url(SHOP)


def first_files(scratch: Path, url: str) -> Checkout:
    """The first files of the project, by a clone of everything and as the service fetches them."""
    clone = ["git", "clone", "--quiet", "--mirror", url, str(scratch / "whole.git")]
    whole = measure(lambda: subprocess.run(clone, check=True))
    checkout = Checkout(scratch / "home", SHOP, url, lambda: "")

    def bring() -> None:
        checkout.fetch("main")
        with checkout.files(checkout.head("main"), "models"):
            pass

    partly = measure(bring)
    sizes = [sum(f.stat().st_size for f in (scratch / name).rglob("*.pack")) for name in ("whole.git", "home")]
    print(f"  a clone of everything {whole[0]:.2f} s, {sizes[0] / 1e6:.1f} MB; "
          f"the files of the project {partly[0]:.2f} s, {sizes[1] / 1e6:.1f} MB: "
          f"seconds x {whole[0] / partly[0]:.1f}, bytes x {sizes[0] / sizes[1]:.1f}")  # fmt: skip
    return checkout


def main(size: int) -> None:
    """The same commits by turns: into a new folder, and into the one before."""
    with tempfile.TemporaryDirectory() as scratch, Sandbox(Path(scratch) / "github") as github:
        print(f"{size} files of models, a large file beside them that was changed {HISTORY} times")
        checkout = first_files(Path(scratch), repository(github, size))
        kept, ratios = WorkTree(Path(scratch) / "kept"), []
        objects_of = Path(scratch) / "home" / "mirror.git" / "objects"
        for turn in range(ROUNDS):
            github.commit(SHOP, "main", {"models/layer0/m7.sql": f"SELECT {turn}\n"}, "Change", author="ann")
            again = measure(lambda: checkout.fetch("main"))
            with checkout.files(checkout.head("main")):  # so that every file is here
                pass
            oid = checkout.tree(checkout.head("main"))
            plain = measure(partial(read, objects_of, partial(one_by_one, Path(scratch) / f"plain{turn}"), oid))
            new = measure(partial(read, objects_of, WorkTree(Path(scratch) / f"new{turn}").bring, oid))
            reused = measure(partial(read, objects_of, kept.bring, oid))
            if turn:  # the first one had nothing to begin with
                ratios.append((plain[1] / new[1], plain[1] / reused[1]))
            ways = {"one by one": plain, "all files": new, "by difference": reused, "fetch of a commit": again}
            print("  " + "   ".join(f"{way} {runs[0]:.2f} s {runs[1]:.2f} CPU s" for way, runs in ways.items()))
        every, difference = (statistics.median(runs) for runs in zip(*ratios, strict=True))
        print(f"CPU of one by one against all files at once: x {every:.1f}, against the difference: x {difference:.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
