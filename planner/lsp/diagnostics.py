"""The errors in a file of the project, each with its place, and the rules of the linter that it breaks."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from mergeplan.planner.catalog.tables import CatalogTables
from mergeplan.planner.checks.linter import CHECKS, LintedProject, Violation, lint_models
from mergeplan.planner.errors import MergeplanError, Place, ProjectError
from mergeplan.planner.lsp.project_view import ProjectView
from mergeplan.planner.lsp.texts import Lines, Span
from mergeplan.planner.session.queries.rules import find_violations

# Rules that also hold where the linter is not enabled: what breaks them fails when it runs.
CERTAIN = ("ambiguousorinvalidcolumn", "nomissingexternalmodels")


@dataclass(frozen=True)
class Diagnostic:
    """A message at a part of a file; `rule` is the linter's, '' for an unreadable part; `model` is the broken model."""

    span: Span
    message: str
    severity: Literal["error", "warning"] = "error"
    rule: str = ""
    model: str = ""


def diagnose_errors(path: str, text: str, errors: Iterable[MergeplanError]) -> tuple[Diagnostic, ...]:
    lines = Lines(text)
    return tuple(
        Diagnostic(_place_span(lines, error.place or Place(path, 1)), f"{error.message} {error.hint}".strip())
        for error in errors
    )


def diagnose_models(view: ProjectView, path: str, text: str, *, own_rules: bool = False) -> tuple[Diagnostic, ...]:
    """Return the broken rules of a file's models; rules in the project's own code only with `own_rules`."""
    models = view.path_models.get(path, ())
    if not models:
        return ()
    lines, names = Lines(text), {model.name for model in models}
    project = view.project if own_rules else replace(view.project, rules=replace(view.project.rules, own=()))
    linted = LintedProject(project, lineage=view.lineage)
    try:
        from_queries = find_violations(CatalogTables(project, known_lineage=view.lineage), names)
        violations = [*lint_models(linted, names), *from_queries, *_certain_violations(linted, names)]
    except ProjectError as error:  # a rule of the project's own fails
        return diagnose_errors(path, text, (error,))
    results = (_violation_diagnostic(lines, violation) for violation in violations if violation.place.path == path)
    return tuple({(result.span, result.message): result for result in results}.values())


def _certain_violations(linted: LintedProject, names: set[str]) -> Iterator[Violation]:
    """Yield the violations of rules that are not enabled, by models that do not ignore them."""
    rules = linted.project.rules
    for name in sorted(names):
        model = linted.models[name]
        for rule in CERTAIN:
            if rule not in rules.every | rules.ignored and not {rule, "all"} & set(model.checks.ignored_rules):
                for message, place in CHECKS[rule](linted, model):
                    yield Violation(rule, name, message, place.place, blocking=False)


def _violation_diagnostic(lines: Lines, violation: Violation) -> Diagnostic:
    message = violation.message[:1].upper() + violation.message[1:]
    severity: Literal["error", "warning"] = "error" if violation.blocking else "warning"
    return Diagnostic(_place_span(lines, violation.place), message, severity, violation.rule, violation.model)


def _place_span(lines: Lines, place: Place) -> Span:
    return lines.word_at(place.line or 1, place.column)
