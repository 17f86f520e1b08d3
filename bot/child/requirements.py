"""The packages that a project asks for, read from its files without running any of them. Pure.

Only names and versions are taken: an index, an address or a path in a file of a pull request would let it choose what
the service connects to. Those are the operator's.
"""

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.python.packages import normalize_name

FILES = ("requirements.lock", "requirements.txt", "pyproject.toml")  # the first that there is counts
OURS = ("mergeplan", "sqlmesh")  # what project code imports by these names is mergeplan's own
MOST_CHARACTERS = {"requirements.lock": 4 << 20, "requirements.txt": 1 << 20, "pyproject.toml": 128 << 10}
# Reading a key of many parts takes the square of their number, or worse.
DEEP_KEY = re.compile(r"(?:(?:(?<![\w-])[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*+\.[ \t]*+){20}")
VERSION = r"(?:===?|[<>!~]=?)\s*+[\w*][\w.*+!-]*"
NAMED = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*+(?:\[[\w\s,.-]*\]\s*+)?"
    rf"(?:\(?\s*+{VERSION}(?:\s*+,\s*+{VERSION})*\s*+\)?\s*+)?(?:;(?P<marker>.*))?"
)
# Of a comparison of versions and systems: no `${NAME}`, which pip replaces by its own settings, and no option.
MARKER = re.compile(r"(?:(?<!\s)-|[\w\s.,\"'<>=!~()+*])*")
HASH = re.compile(r"\s--hash=\w+:[0-9a-fA-F]+")
HINT = "Write `NAME==VERSION`. The operator decides where packages come from: docs/guides/python.md, packages."


@dataclass(frozen=True)
class Requirements:
    """What a file asks for, a requirement a line; `path` is the file's name."""

    path: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """As a requirements file of pip."""
        return "".join(f"{line}\n" for line in self.lines)


def requirements_of(read: Callable[[str], str | None]) -> Requirements | None:
    """Return the requirements of the first of FILES that exists, or None; raise ProjectError at a wrong line."""
    for path in FILES:
        if (text := read(path)) is not None:
            if len(text) > MOST_CHARACTERS[path]:
                raise ProjectError(f"It is longer than {MOST_CHARACTERS[path]:,} characters.", place=Place(path))
            numbered = _read_dependencies(path, text) if path.endswith(".toml") else _read_requirements(text)
            lines = tuple(_check_requirement(path, number, line) for number, line in numbered)
            requirements = tuple(line for line in lines if _package_name(line) not in OURS)
            return Requirements(path, requirements) if requirements else None
    return None


def _read_requirements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the requirements of a file with their line numbers, without comments and with continued lines joined."""
    begun, first = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        bare = re.sub(r"(^|\s)#.*$", "", line).rstrip()
        first = first if begun else number
        begun += bare.removesuffix("\\")
        if bare.endswith("\\"):
            continue
        if begun.strip():
            yield first, begun.strip()
        begun = ""
    if begun.strip():
        yield first, begun.strip()


def _read_dependencies(path: str, text: str) -> Iterator[tuple[int, str]]:
    if DEEP_KEY.search(text):
        raise ProjectError("A key has more than 20 parts.", place=Place(path))
    try:
        project = tomllib.loads(text).get("project", {})
    except (ValueError, RecursionError) as error:  # a number may have too many digits
        raise ProjectError(f"This is not TOML: {str(error)[:200].rstrip('.')}.", place=Place(path)) from None
    listed = project.get("dependencies", []) if isinstance(project, dict) else []
    if not isinstance(listed, list) or not all(isinstance(dependency, str) for dependency in listed):
        raise ProjectError("`dependencies` must be a list of texts.", place=Place(path))
    lines, at = text.splitlines(), 0
    for dependency in listed:
        at = next((later for later in range(at, len(lines)) if dependency in lines[later]), at)
        yield at + 1, dependency


def _check_requirement(path: str, number: int, line: str) -> str:
    bare = " ".join(HASH.sub("", line).split())
    match = NAMED.fullmatch(bare)
    if match is None or not MARKER.fullmatch(match["marker"] or "") or any(not char.isprintable() for char in line):
        problem = "is an option of pip" if bare.startswith("-") else "is not a package by name and version"
        raise ProjectError(f"`{line[:80]}` {problem}.", place=Place(path, number), hint=HINT)
    return line


def _package_name(line: str) -> str:
    match = NAMED.match(line)
    return normalize_name(match["name"]) if match else ""
