"""Measures the language of names, documents and commits: `python -m tests.language` prints the numbers.

CONTRIBUTING.md has the rules: a function is a verb or a noun and no participle, a variable names its thing, documents
and texts use the field's words. `tests/test_language.py` holds that no number rises.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("planner", "bot", "mergeplan", "sandbox/mergeplan_sandbox")
# Past participles that no ending shows, and particles: neither says what a function does or returns.
IRREGULAR = frozenset(
    """begun bound brought built caught chosen cut done drawn fallen felt forgotten found given gone heard held hidden
    hushed kept known laid left lent let lost made meant met paid put read run said seen sent set shown shut spelled
    split spoken stood struck taken thrown told torn understood woken written""".split()
)
BASE_FORMS = frozenset("cut let put read run set shut split".split())  # also verbs in the imperative
NO_PARTICIPLE = frozenset("embed feed need seed shed speed bed red".split())
PARTICLES = frozenset(
    "about after among apart at before beside between beyond by for from in into of on to with".split()
)
VAGUE = frozenset({"each", "found", "given"})
IDLE = frozenset(
    """known own left wanted asked said seen kept held stands beside told met here there why what which how else other
    others rest mine theirs ours before after now then again both all some any none such same more most least""".split()
)
CLAUSE = re.compile(r"(What|Which|Where|When|Whether|How|Who|Why|Of|As|In|By|That|Those|Each)\b")
PRIVATE = re.compile(
    r"\b(told|heard|hushed|beats?|struck|stretch(?:es)?|spared|going on|stands? (?:there|still)|comes? to rest|mends?"
    r"|mended|asked|bears?|anew|whoever|somebody|nobody|at hand|says? so|goes by|in sight"
    r"|what (?:it|they) (?:says?|holds?)|needs? no leave|the way of|by the way|lanes?|desks?|words? of|takes? in)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Measure:
    """One number: how many of how many."""

    count: int
    total: int

    @property
    def per_thousand(self) -> float:
        return 1000 * self.count / max(self.total, 1)


@dataclass
class Names:
    """What is named in files: functions, their parameters, and what is assigned to, loops included."""

    functions: list[str] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)


@cache
def names_in(packages: tuple[str, ...] = PACKAGES) -> Names:
    """The names in the files of these packages: of the product, where none are named."""
    names = Names()
    for path in (path for package in packages for path in sorted((ROOT / package).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                names.functions.append(node.name)
            elif isinstance(node, ast.arg):
                names.parameters.append(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.variables.append(node.id)
    return names


def is_participle(name: str) -> bool:
    """True for a function's name that begins with a participle or a particle: `_told`, `given_to`, `of`.

    >>> [is_participle(name) for name in ("rendered", "render", "_asked_by", "of", "seed_rows", "read_file")]
    [True, False, True, True, False, False]
    """
    first = name.strip("_").partition("_")[0]
    if first in NO_PARTICIPLE or first in BASE_FORMS:
        return False
    return first in IRREGULAR or first in PARTICLES or (len(first) > 4 and first.endswith("ed"))


def function_names(packages: tuple[str, ...] = PACKAGES) -> Measure:
    """Functions that are named by a participle or a particle."""
    names = names_in(packages).functions
    return Measure(sum(map(is_participle, names)), len(names))


def parameter_names(packages: tuple[str, ...] = PACKAGES) -> Measure:
    """Parameters that are called `each`, `found` or `given`."""
    names = names_in(packages).parameters
    return Measure(sum(name in VAGUE for name in names), len(names))


def variable_names(packages: tuple[str, ...] = PACKAGES) -> Measure:
    """Assignments, loops included, to a variable that is called `each`, `found` or `given`."""
    names = names_in(packages).variables
    return Measure(sum(name in VAGUE for name in names), len(names))


@cache
def docstrings() -> list[tuple[bool, str]]:
    """Every function of the product but properties: whether it has no docstring, and the docstring."""
    rows = []
    for path in (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                names = {ast.unparse(decorator) for decorator in node.decorator_list}
                if not names & {"property", "cached_property"}:
                    text = ast.get_docstring(node)
                    rows.append((text is None, text or ""))
    return rows


def clause_docstrings() -> Measure:
    """Docstrings that open with a clause in place of a verb."""
    texts = [text for missing, text in docstrings() if not missing]
    return Measure(sum(bool(CLAUSE.match(text)) for text in texts), len(texts))


def documented_functions() -> Measure:
    """Functions that have a docstring."""
    rows = docstrings()
    return Measure(sum(not missing for missing, _ in rows), len(rows))


def short_names() -> Measure:
    """Functions whose name is one word."""
    names = [name for name in names_in().functions if not name.startswith("__")]
    return Measure(sum("_" not in name.strip("_") for name in names), len(names))


def idle_names() -> Measure:
    """Assignments to a variable whose name says nothing of its content."""
    names = names_in().variables
    return Measure(sum(name in IDLE for name in names), len(names))


def unimperative_docstrings() -> Measure:
    """Docstrings that ruff's D401 does not take for the imperative."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "D401", "--output-format", "json"]
    checked = subprocess.run([*command, *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=False)
    return Measure(len(json.loads(checked.stdout)), documented_functions().count)


def pages() -> dict[str, Measure]:
    """Private words of each document, of all its words."""
    names = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
    paths = [*(ROOT / name for name in names), *sorted((ROOT / "docs").rglob("*.md"))]
    texts = {path: re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL) for path in paths}
    return {
        str(path.relative_to(ROOT)): Measure(len(PRIVATE.findall(text)), len(text.split()))
        for path, text in texts.items()
    }


def commit_subjects(last: int = 100) -> Measure:
    """Commits whose message the hook refuses for its subject."""
    listed = subprocess.run(
        ["git", "log", "--no-merges", f"-{last}", "--format=%s"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    subjects = listed.stdout.splitlines()
    hook: dict[str, object] = {"__name__": "hook"}
    exec((ROOT / ".githooks" / "commit-msg").read_text(encoding="utf-8"), hook)  # noqa: S102  # our own file
    problems = hook["problems"]
    assert callable(problems)
    return Measure(sum(bool(problems(f"{subject}\n\nWhy.")) for subject in subjects), len(subjects))


def folder_sizes() -> dict[str, int]:
    """The number of files in each folder."""
    roots = [ROOT / package for package in PACKAGES]
    places = [*roots, *(place for root in roots for place in root.rglob("*/") if not place.is_symlink())]
    return {str(folder.relative_to(ROOT)): len(list(folder.glob("*.py"))) for folder in places}


def importers(folder: str) -> dict[str, set[str]]:
    """The product files that import each module of a folder, its table apart: what a change of the module can touch."""
    imports = re.compile(rf"^\s*from mergeplan\.{folder.replace('/', '.')}\.(\w+) import", re.MULTILINE)
    names = {path.stem for path in (ROOT / folder).glob("*.py")} - {"__init__", "table"}
    files: dict[str, set[str]] = {name: set() for name in names}
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for name in names.intersection(imports.findall(path.read_text(encoding="utf-8"))):
            files[name].add(str(path.relative_to(ROOT)))
    return files


def lines() -> int:
    """Lines of product code."""
    paths = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return sum(path.read_text(encoding="utf-8").count("\n") for path in paths)


def main() -> None:
    """Print every number."""
    rows = [("refused commit subjects of the last 100", commit_subjects())]
    for place, packages in (("", PACKAGES), (" of tests", ("tests",))):
        rows.append((f"functions{place} named by a participle", function_names(packages)))
        rows.append((f"parameters{place} each, found, given", parameter_names(packages)))
        rows.append((f"variables{place} each, found, given", variable_names(packages)))
    rows += [
        ("docstrings that are not in the imperative", unimperative_docstrings()),
        ("docstrings that open with a clause", clause_docstrings()),
        ("functions with a docstring", documented_functions()),
        ("functions named by one word", short_names()),
        ("variables with names that say nothing", idle_names()),
    ]
    rows += [(f"private words, {page}", measure) for page, measure in pages().items()]
    for name, measure in rows:
        sys.stdout.write(f"{measure.per_thousand:8.1f} per 1,000  {measure.count:5} of {measure.total:6}  {name}\n")
    for folder, size in sorted(folder_sizes().items(), key=lambda pair: -pair[1])[:5]:
        sys.stdout.write(f"{size:8} files      {folder}\n")
    for folder in ("bot/commands/verbs", "bot/report/checks"):
        counts = sorted(map(len, importers(folder).values()))
        sys.stdout.write(f"{counts[len(counts) // 2]:8} importers  of a file in {folder} (median; most {counts[-1]})\n")
    sys.stdout.write(f"{lines():8} lines of product code\n")


if __name__ == "__main__":
    main()
