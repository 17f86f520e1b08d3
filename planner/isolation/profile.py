"""The permissions of an isolated process, as data for its launcher; the paths of an interpreter and of libraries."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mergeplan.planner.isolation.seccomp import Network

PACKAGE = Path(__file__).parents[1]  # `mergeplan.planner`
SYSTEM = (
    "/lib", "/lib64", "/lib32", "/usr/lib", "/usr/lib64", "/usr/lib32", "/usr/local/lib", "/usr/local/lib64",
    "/etc/ld.so.cache", "/etc/localtime", "/etc/timezone", "/usr/share/zoneinfo", "/usr/share/locale",
    "/dev/zero", "/dev/random", "/dev/urandom",
)  # fmt: skip
DEVICES = ("/dev/null",)
LONGEST = 24 * 3600  # seconds of processor time


def module_program(module: str) -> str:
    """Return a `python -c` program that runs a module's `main`; its first argument is `mergeplan.planner`'s path."""
    packages = "m, p = types.ModuleType('mergeplan'), types.ModuleType('mergeplan.planner')"
    paths = "m.__path__, p.__path__ = [], [sys.argv.pop(1)]; sys.modules.update({m.__name__: m, p.__name__: p})"
    return f"import sys, types; {packages}; {paths}; from {module} import main; main()"


@dataclass(frozen=True)
class IsolationProfile:
    """The permissions of a process: paths that it may read (and run), and write; its network; its limits.

    `listener` is the descriptor of a socket on which the launcher sends the descriptor that is notified of each
    `connect`.
    """

    read: tuple[str, ...]
    write: tuple[str, ...]
    network: Network = Network.PROXY
    memory: int = 8  # GiB
    seconds: int = LONGEST
    own_user: bool = True  # when root starts it
    limited: bool = True
    modes: bool = False  # to set a file's mode or times does nothing, and is no error: installers do
    listener: int = -1

    def listening(self, descriptor: int) -> IsolationProfile:
        return replace(self, listener=descriptor)

    @property
    def text(self) -> str:
        return json.dumps(asdict(self))

    def launch_command(self, command: Sequence[str]) -> list[str]:
        return [sys.executable, "-I", "-S", "-c", LAUNCH, str(PACKAGE), self.text, *command]


LAUNCH = module_program("mergeplan.planner.isolation.launcher")


def profile_from(text: str) -> IsolationProfile:
    data: dict[str, Any] = json.loads(text)
    paths = {name: tuple(data[name]) for name in ("read", "write")}
    return IsolationProfile(**{**data, **paths, "network": Network(data["network"])})


def exclude_hidden(paths: Iterable[str], hidden_paths: Sequence[Path]) -> tuple[str, ...]:
    """Return the paths without hidden ones: a folder that contains a hidden path is replaced by its other contents."""
    resolved = [folder.resolve() for folder in hidden_paths]
    return tuple(part for path in paths for part in _visible_paths(Path(path), resolved))


def _visible_paths(path: Path, hidden_paths: Sequence[Path]) -> Iterator[str]:
    real = path.resolve()
    below = [folder for folder in hidden_paths if folder.is_relative_to(real)]
    if not below:
        yield str(path)
    elif real not in below and real.is_dir():
        for child in sorted(real.iterdir()):
            yield from _visible_paths(child, below)
