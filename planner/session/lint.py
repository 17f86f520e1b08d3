"""lint: the models held to the project's rules about how they are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mergeplan.planner.checks.linter import Violation, lint
from mergeplan.planner.errors import ProjectErrors
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.model.selection import in_default, select
from mergeplan.planner.project.loader import Project
from mergeplan.planner.session.events import Emit, Linted
from mergeplan.planner.session.git_changes import changed_since


@dataclass(frozen=True)
class LintReport:
    """How many models were looked at, and the rules that some of them break."""

    models: int
    violations: tuple[Violation, ...]

    @property
    def ok(self) -> bool:
        """True when nothing would stop a plan."""
        return not any(each.blocking for each in self.violations)


def linted(project: Project, selectors: Sequence[str] = (), refused: Iterable[Violation] = ()) -> LintReport:
    """The models, or those of the selectors, held to the rules of `linter` in config.yaml; with those `refused`."""
    named = [in_default(each, project.catalogs.default) for each in selectors]
    chosen = select(graph_of(project.models), named, changed_since(project)) if named else None
    return LintReport(len(project.models) if chosen is None else len(chosen), (*refused, *lint(project, chosen)))


def check_rules(project: Project, on_event: Emit, refused: Iterable[Violation] = ()) -> None:
    """Report warnings before a plan, and raise broken rules as ProjectErrors."""
    found = (*refused, *lint(project))
    on_event(Linted(tuple(each for each in found if not each.blocking)))
    if errors := tuple(each.error for each in found if each.blocking):
        raise ProjectErrors(errors)
