"""The tree tells the story: a module imports only from floors below its own, and one library has one door."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = (ROOT / "tests" / "floors.txt").read_text().split("\n")  # ground first; modules on one line never meet
FLOOR = {module: floor for floor, line in enumerate(FLOORS) for module in line.partition("#")[0].split()}
FILES = [p for package in ("planner", "bot") for p in sorted((ROOT / package).rglob("*.py")) if p.name != "__init__.py"]
DOORS = {
    "pyspark": {"planner/spark", "planner/code/executing.py"},
    "sqlalchemy": {
        "planner/database.py",
        "planner/state",
        "planner/migrations",
        "bot/inbox.py",
        "bot/tables.py",
        "bot/migrations",
    },
    "alembic": {"planner/database.py", "planner/migrations", "bot/migrations"},
    "github": {"bot/github.py", "bot/owners.py", "bot/patience.py"},
    "fastapi": {"bot/app.py", "bot/sandbox"},
    "rich": {"planner/cli", "bot/demo.py"},
}
PURE = {"pyspark", "sqlalchemy", "github", "fastapi", "rich", "click", "subprocess", "socket"}


def module_of(name: str) -> str:
    """``planner.checks.audits`` -> ``planner.checks``; a module is its first two names."""
    return ".".join(name.split(".")[:2])


def imported(path: Path) -> set[str]:
    """Every name that the file imports, at any depth of the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", FILES, ids=named)
def test_imports_only_from_floors_below(path: Path) -> None:
    own = module_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
    ours = {module_of(name) for name in imported(path)} & FLOOR.keys()

    assert own in FLOOR, f"{own} has no floor yet: give it one in tests/floors.txt"
    assert not {name for name in ours - {own} if FLOOR[name] >= FLOOR[own]}


@pytest.mark.parametrize("path", FILES, ids=named)
def test_a_library_is_imported_through_its_door_only(path: Path) -> None:
    roots = {name.split(".")[0] for name in imported(path)}
    strangers = {
        library
        for library, doors in DOORS.items()
        if library in roots and not any(named(path).startswith(door) for door in doors)
    }

    assert not strangers


@pytest.mark.parametrize("path", [p for p in FILES if named(p).startswith("planner/")], ids=named)
def test_the_planner_never_knows_the_bot(path: Path) -> None:
    assert not {name for name in imported(path) if name.split(".")[0] == "bot"}


def test_the_pure_part_does_no_io() -> None:
    pure = {module for module, floor in FLOOR.items() if floor <= FLOOR["planner.plan"]}
    for path in FILES:
        if module_of(".".join(path.relative_to(ROOT).with_suffix("").parts)) in pure:
            assert not {name.split(".")[0] for name in imported(path)} & PURE, named(path)


def test_no_module_reaches_for_its_own_package_late() -> None:
    """Imports of ours inside functions hide cycles; the command line alone delays them, to start fast."""
    for path in FILES:
        if named(path).startswith(("planner/cli", "bot/main.py")):
            continue
        for function in (n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)):
            late = [
                n
                for n in ast.walk(function)
                if isinstance(n, ast.ImportFrom) and (n.module or "").split(".")[0] in ("planner", "bot")
            ]
            assert not late, f"{named(path)}:{function.lineno}"
