"""The benchmarks of this commit beside those of the last release, on the same machine: new / old of every number.

make bench-release
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
OLD = ROOT / "build" / "last-release"
TARGETS = ("bench-plan", "bench-quickstart", "bench-apply", "bench-state")
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w.])")


def last_release() -> str:
    """The newest tag of a version before this commit; '' when there is none."""
    command = ["git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*.[0-9]*.[0-9]*", "HEAD^"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def ratios(old: str, new: str) -> Iterator[str]:
    """The lines of a benchmark's output that both have, with new / old of each number that is not the same in both."""
    before: dict[str, list[list[str]]] = {}
    for line in old.splitlines():
        before.setdefault(_shape(line), []).append(NUMBER.findall(line))
    for line in new.splitlines():
        if (numbers := NUMBER.findall(line)) and (left := before.get(_shape(line))):
            pairs = list(zip(left.pop(0), numbers, strict=True))
            if any(one != other for one, other in pairs):
                yield f"{line}   new / old: {' '.join(_ratio(one, other) for one, other in pairs)}"


def _shape(line: str) -> str:
    return " ".join(NUMBER.sub("#", line).split())


def _ratio(old: str, new: str) -> str:
    one, other = float(old.replace(",", "")), float(new.replace(",", ""))
    return f"{other / one:.2f}" if one else "-"


def output(target: str, folder: Path, python: str) -> str:
    """What a target of the Makefile prints in a clone; its errors are shown as they come."""
    command = ["make", "--no-print-directory", target, f"PYTHON={python}"]
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout


def main(python: str) -> int:
    tag = last_release()
    if not tag:
        print("There is no release to compare with.")
        return 0
    subprocess.run(["git", "worktree", "add", "--detach", "--force", str(OLD), tag], cwd=ROOT, check=True)
    try:
        for target in TARGETS:
            old, new = (output(target, folder, python) for folder in (OLD, ROOT))
            print(f"### {target}, new / {tag}", "```", *ratios(old, new), "```", sep="\n", flush=True)
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", str(OLD)], cwd=ROOT, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if sys.argv[1:] else "python3"))
