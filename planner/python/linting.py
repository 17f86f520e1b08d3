"""Runs custom linter rules in a child: the models are sent as data, and the violations are returned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import read_setting
from mergeplan.planner.python.host import Child, ChildFailed
from mergeplan.planner.python.isolation import NO_ISOLATION, Isolation
from mergeplan.planner.python.messages import ChildMessage

LONGEST = 120.0  # seconds that all rules together may take
NAMES = """name path dialect sql owner description start end stamp time_column lookback batch_size partitioned_by
    clustered_by unique_key storage_format table_format forward_only ignored_rules""".split()


class Found(ChildMessage):
    """A violation that a rule found in a model; line and column are 0 if it gave none."""

    rule: str
    model: str
    message: str
    line: int = Field(0, ge=0)
    column: int = Field(0, ge=0)


@dataclass(frozen=True)
class RuleRequest:
    name: str
    class_name: str
    place: Place
    models: tuple[str, ...]


def run_rules(
    root: Path,
    files: Mapping[str, str],
    rules: Sequence[RuleRequest],
    models: Mapping[str, Model],
    columns: Mapping[str, Sequence[tuple[str, str]] | None],
    isolation: Isolation = NO_ISOLATION,
) -> tuple[Found, ...]:
    """Return the violations; `files` are the project's Python texts. Raise ProjectError at a failing rule's line."""
    request = {
        "op": "lint",
        "root": str(root),
        "models": [_rule_view(model, columns.get(name)) for name, model in models.items()],
        "rules": [
            {"name": r.name, "class_name": r.class_name, "path": r.place.path, "models": r.models} for r in rules
        ],
    }
    try:
        child = Child(root, files, isolation)
        try:
            violations = TypeAdapter(tuple[Found, ...]).validate_python(child.ask(request, LONGEST))
        finally:
            child.stop()
    except ChildFailed as failed:
        wrong = failed.wrong
        place = Place(wrong.path, wrong.line) if wrong.path else rules[0].place
        raise ProjectError(f"A linter rule failed: {wrong.message.rstrip('.')}.", place=place) from None
    except ValidationError:
        raise ProjectError("A linter rule returned an invalid result.", place=rules[0].place) from None
    names = {rule.name for rule in rules}
    return tuple(violation for violation in violations if violation.rule in names and violation.model in models)


def _rule_view(model: Model, columns: Sequence[tuple[str, str]] | None) -> dict[str, Any]:
    properties = {name: read_setting(model, name) for name in NAMES}
    body = "python" if model.python else "sql"
    if not model.kind.has_query:
        body = model.kind.lower()
    return {
        **properties,
        "kind": str(model.kind),
        "body": body,
        "tags": list(model.metadata.tags),
        "cron": model.cron.text,
        "depends_on": list(model.depends_on),
        "columns": columns,
        "column_descriptions": dict(model.metadata.column_descriptions),
        "audits": [[call.name, dict(call.arguments)] for call in model.checks.audits],
        "grains": list(model.metadata.grain),
        "physical_properties": dict(model.storage.physical_properties),
    }
