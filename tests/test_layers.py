"""The tree tells the story: a file imports only from its own stage and those before it, a library has one door."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.language import PACKAGES, ROOT

# From text to tables: a stage may use those that stand before it, and none that stand after it.
STAGES = """
    planner.errors planner.file_note planner.limits planner.intervals planner.naming planner.fingerprint
    planner.serial planner.deferred planner.data_field planner.replace_file planner.wording planner.name_lists
    planner.versions planner.tested_versions planner.project_format
    planner.model planner.semantics planner.snapshot
    planner.parsing.sql planner.parsing.macros planner.parsing.definitions
    planner.parsing.files planner.parsing.render planner.parsing.named_columns
    planner.plan
    planner.first_alone planner.cache planner.isolation planner.forked planner.engine planner.python planner.project
    planner.tables planner.checks
    planner.state planner.apply planner.catalog planner.contract planner.session
    planner.site planner.exports planner.api planner.agents planner.ui planner.lsp mergeplan planner.cli
    bot.projects bot.secret_files bot.fetching bot.settings bot.policy bot.inflight bot.branches bot.cicd_section
    bot.readers bot.results bot.pull_parts bot.records bot.transitions bot.budgets
    bot.report bot.commands bot.report.offers bot.report.checks bot.report.comment bot.report.replies
    bot.rules bot.metrics bot.notifications bot.tracing
    bot.pages bot.forge bot.github bot.git bot.inbox bot.child bot.context bot.pulls bot.prod
    bot.service bot mergeplan.__main__ mergeplan_sandbox
""".split()
PURE = STAGES[: STAGES.index("planner.plan") + 1]  # no Spark, no database, no network, no processes, no clock
IMPURE = {"pyspark", "sqlalchemy", "github", "fastapi", "rich", "click", "subprocess", "socket", "threading", "time"}
DOORS = {
    "pyspark": ("planner/engine/spark", "planner/python/executing.py"),
    "sqlalchemy": ("planner/state", "bot/inbox"),
    "alembic": ("planner/state/database.py", "planner/state/migrations", "bot/inbox/migrations"),
    "github": ("bot/github",),
    "fastapi": ("bot/service/app.py", "sandbox", "planner/api", "planner/ui/routes"),
    "rich": ("planner/cli", "sandbox/mergeplan_sandbox/demo.py"),
    "opentelemetry": ("bot/tracing.py",),
    "click": ("planner/cli", "bot/cli.py"),
    "dagster": ("mergeplan/dagster",),
    "mcp": ("planner/agents/server.py",),
    "airflow": ("mergeplan/airflow",),
    "pygls": ("planner/lsp/server",),
    "lsprotocol": ("planner/lsp/server",),
}


def module_of(path: Path) -> str:
    """The name of a file's module; those of `planner` and `bot` without the `mergeplan.` before it."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__").removeprefix("sandbox.")


def short(name: str) -> str:
    """An imported name as `module_of` writes it."""
    return re.sub(r"^mergeplan\.(?=(planner|bot)\b)", "", name)


TO_SPARK = {"planner.session.workspace", "planner.session.use_cases.plan"}
TO_STATE = {"planner.lsp.remembered_state"}
TO_SQLGLOT = {"planner.python.child"}
TO_CATALOG = {"planner.session.use_cases.lint"}
TO_FOREIGN = {"planner.project.loader", "planner.project.configuration_files", "planner.project.pipeline_folder"}
FILES = {module_of(path): path for folder in PACKAGES for path in sorted((ROOT / folder).rglob("*.py"))}


INDENTED = re.compile(r"^[ \t]+from mergeplan", re.MULTILINE)  # few files have one, and only those are parsed again


@cache
def imports_of(module: str) -> frozenset[str]:
    """Every name that a file imports, at any depth of the file, for type checking too."""
    modules = set()
    for node in ast.walk(ast.parse(FILES[module].read_text())):
        if isinstance(node, ast.Import):
            modules |= {short(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            home = short(node.module)
            names = {f"{home}.{alias.name}" for alias in node.names}
            modules |= {name for name in names if name in FILES} or {home}
    return frozenset(modules)


def ours(module: str) -> Iterator[str]:
    """The files of this project that a file imports."""
    return (name for name in imports_of(module) if name in FILES and name != module)


def stage_of(module: str) -> int:
    """The place of the longest stage whose name the module's begins with."""
    names = [name for name in STAGES if module == name or module.startswith(f"{name}.")]
    return STAGES.index(max(names, key=len)) if names else -1


def test_every_file_stands_in_a_stage_and_imports_none_after_it() -> None:
    packages = {"planner", "planner.parsing"}  # they hold nothing
    homeless = [module for module in FILES.keys() - packages if stage_of(module) < 0]
    upwards = [(m, name) for m in FILES for name in ours(m) if stage_of(name) > stage_of(m) and m not in packages]

    assert not homeless, "give it a stage in tests/test_layers.py"
    assert not upwards


def test_no_file_imports_itself_by_way_of_others() -> None:
    try:
        tuple(TopologicalSorter({module: set(ours(module)) for module in FILES}).static_order())
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_a_library_is_imported_through_its_door_only() -> None:
    strangers = [
        (module, library)
        for module, path in FILES.items()
        for library, doors in DOORS.items()
        if library in {name.split(".")[0] for name in imports_of(module)}
        and not path.relative_to(ROOT).as_posix().startswith(doors)
    ]
    assert not strangers


def test_the_pure_stages_do_no_io() -> None:
    pure = [module for module in FILES if 0 <= stage_of(module) < len(PURE) or module.startswith("planner.catalog.")]
    assert len(pure) > 90
    assert not [(m, name) for m in pure for name in imports_of(m) if name.split(".")[0] in IMPURE]


def test_the_sandbox_knows_neither_bot_nor_planner() -> None:
    """Its demo, which runs both, is not the sandbox itself; neither imports it, for it stands after them."""
    sandbox = [module for module in FILES if module.startswith("mergeplan_sandbox.") and not module.endswith(".demo")]
    assert sandbox
    assert not [(m, name) for m in sandbox for name in ours(m) if not name.startswith("mergeplan_sandbox")]


def test_no_file_reaches_for_our_own_packages_late() -> None:
    """Imports of ours inside functions hide cycles; the command line delays them, to start fast, and so do the two
    places where a session turns to Spark, the one where an editor turns to the state, the one where a process of
    project code, which starts fast too, turns to sqlglot, the one where the linter turns to the catalog, and those
    where a folder turns out to be dbt's or a pipeline."""
    doors = TO_SPARK | TO_STATE | TO_SQLGLOT | TO_CATALOG | TO_FOREIGN
    late = [
        f"{module}:{function.lineno}"
        for module, path in FILES.items()
        if not module.startswith(("planner.cli", "bot.main")) and module not in doors
        if INDENTED.search(text := path.read_text())
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom)
        and short(node.module or "").split(".")[0] in ("planner", "bot", "mergeplan_sandbox")
    ]
    assert not late
