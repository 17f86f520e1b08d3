"""lint: the models held to the project's rules about how they are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mergeplan.planner.checks.linter import Violation, lint, sort_violations
from mergeplan.planner.errors import Place, ProjectError, ProjectErrors
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.parsing.files.lint_config import REFUSED
from mergeplan.planner.project.loader import Project
from mergeplan.planner.session.events import Linted, Warned
from mergeplan.planner.session.use_cases.git_changes import select_by_request
from mergeplan.planner.session.workspace import Workspace

if TYPE_CHECKING:
    from mergeplan.planner.catalog.tables import Changes

READ = ("models", "audits")  # whose files have their own errors
BEGIN = 1000  # bytes of a file


@dataclass(frozen=True)
class LintReport:
    """How many models were looked at, and the rules that some of them break."""

    models: int
    violations: tuple[Violation, ...]

    @property
    def ok(self) -> bool:
        """True when nothing would stop a plan."""
        return not any(violation.blocking for violation in self.violations)


def lint_project(
    work: Workspace, selectors: Sequence[str] = (), extra_violations: Iterable[Violation] = ()
) -> LintReport:
    project = work.project
    chosen = select_by_request(project, selectors) if selectors else None
    misplaced = _find_misplaced_models(project) if chosen is None else ()
    violations = (*extra_violations, *_find_cycles(project), *misplaced, *_find_violations(work, chosen))
    work.lookups.keep()
    return LintReport(len(project.models) if chosen is None else len(chosen), violations)


def _find_cycles(project: Project) -> tuple[Violation, ...]:
    try:
        graph_of(project.models)
    except ProjectError as error:
        return (Violation(REFUSED, "", f"{error.message} {error.hint}", error.place or Place(""), cause=error),)
    return ()


def _find_misplaced_models(project: Project) -> tuple[Violation, ...]:
    root, patterns = project.root, project.config.ignore_patterns
    folders = [path for path in root.iterdir() if path.is_dir() and path.name not in READ and path.name[0] != "."]
    paths = sorted(file.relative_to(root) for folder in (root, *folders) for file in folder.glob("*.sql"))
    message = "The model is not read: models are in `models/`. Move it there, or add it to `ignore_patterns`."
    return tuple(
        Violation(REFUSED, "", message, Place(path.as_posix(), 1), blocking=False)
        for path in ([] if project.is_dbt else paths)
        if not any(path.match(pattern) for pattern in patterns) and _begins_like_model(root / path)
    )


def _begins_like_model(file: Path) -> bool:
    with suppress(OSError):  # a file that cannot be read is none of the project's
        if file.is_file():
            with file.open("rb") as opened:
                return opened.read(BEGIN).lstrip().upper().startswith((b"MODEL (", b"MODEL("))
    return False


def _find_violations(
    work: Workspace, only: AbstractSet[str] | None = None, changes: Changes = tuple
) -> tuple[Violation, ...]:
    violations = lint(work.project, only, work.shapes)
    if not any(rule.is_query for rule in work.project.rules.own):
        return violations
    from mergeplan.planner.catalog.tables import CatalogTables  # with the catalog, which few projects query
    from mergeplan.planner.session.queries.rules import find_violations

    from_queries = find_violations(CatalogTables(work.project, work.shapes, changes=changes), only)
    return sort_violations((*violations, *from_queries))


def check_rules(work: Workspace, extra_violations: Iterable[Violation] = (), changes: Changes = tuple) -> None:
    """Report warnings and raise broken rules as ProjectErrors; `changes` makes the plan for a rule that queries it."""
    on_event = work.on_event
    for note in work.project.notes:
        on_event(Warned(note))
    violations = (*extra_violations, *_find_violations(work, changes=changes))
    on_event(Linted(tuple(violation for violation in violations if not violation.blocking)))
    if errors := tuple(violation.error for violation in violations if violation.blocking):
        raise ProjectErrors(errors)
