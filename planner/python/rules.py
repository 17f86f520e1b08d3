"""Custom linter rules as they run in the child: the classes that they import, and the models that they check."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from mergeplan.planner.python.modules import module_name
from mergeplan.planner.python.shims import add_module

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class Position:
    """A place in a file; line and character count from 0."""

    line: int
    character: int


@dataclass(frozen=True)
class Range:
    """From one place to another."""

    start: Position
    end: Position


@dataclass(frozen=True)
class TextEdit:
    """A text that replaces a range."""

    range: Range
    new_text: str


@dataclass(frozen=True)
class Fix:
    """How a violation could be fixed; fixes are not applied."""

    title: str
    edits: tuple[TextEdit, ...] | list[TextEdit]


class RuleViolation:
    """A violation; without a range it is about the model as a whole."""

    def __init__(self, rule: Any, violation_msg: str, violation_range: Range | None = None, *_: Any, **__: Any) -> None:
        self.rule, self.violation_msg, self.violation_range = rule, violation_msg, violation_range


class Rule:
    """The base class of custom rules: `check_model` returns a violation, several, or None."""

    name: ClassVar[str] = "rule"

    def __init_subclass__(cls, **_: Any) -> None:
        cls.name = cls.__name__.lower()

    def __init__(self, context: LintContext) -> None:
        self.context = context

    def check_model(self, model: LintedModel) -> RuleViolation | list[RuleViolation] | None:
        raise NotImplementedError(f"`{type(self).__name__}` has no `check_model`")

    @property
    def summary(self) -> str:
        """The rule's docstring."""
        return (self.__doc__ or "").strip()

    def violation(
        self, violation_msg: str | None = None, violation_range: Range | None = None, **_: Any
    ) -> RuleViolation:
        return RuleViolation(self, violation_msg or self.summary, violation_range)


class LintedKind:
    """A model's kind: its name, and `is_full`, `is_view`, `is_incremental_by_time_range` and so on."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> bool:
        if not name.startswith("is_"):
            raise AttributeError(f"a kind shows no `{name}` to a rule")
        kind = name.removeprefix("is_").upper()
        if kind == "SYMBOLIC":
            return self.name in ("EMBEDDED", "EXTERNAL")
        if kind == "INCREMENTAL":
            return self.name.startswith("INCREMENTAL")
        return kind == self.name

    def __str__(self) -> str:
        return self.name


class LintedModel:
    """A model as a rule sees it, read-only."""

    def __init__(self, data: Mapping[str, Any], root: str) -> None:
        object.__setattr__(self, "_given", MappingProxyType(dict(data)))
        object.__setattr__(self, "_path", Path(root, data["path"]))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a rule cannot change a model")

    def __getattr__(self, name: str) -> Any:
        properties: Mapping[str, Any] = object.__getattribute__(self, "_given")
        if name not in properties:
            raise AttributeError(f"a model shows no `{name}` to a rule; it shows {', '.join(sorted(properties))}")
        return properties[name]

    @property
    def kind(self) -> LintedKind:
        return LintedKind(self._given["kind"])

    @property
    def fqn(self) -> str:
        return ".".join(f'"{part}"' for part in self._given["name"].split("."))

    @property
    def depends_on(self) -> set[str]:
        return set(self._given["depends_on"])

    @property
    def columns_to_types(self) -> dict[str, exp.DataType] | None:
        """Its columns, None if they are not known; an unknown type is UNKNOWN."""
        columns = self._given["columns"]
        return None if columns is None else {name: _data_type(kind) for name, kind in columns}

    @property
    def query(self) -> Any:
        """Its query as sqlglot reads it, None when it has none."""
        from sqlglot import parse_one  # which takes longer than a child takes to start

        sql = self._given["sql"]
        return parse_one(sql, dialect="spark") if sql else None

    def render_query(self, *_: Any, **__: Any) -> Any:
        """Return its query with macros expanded, except dates."""
        return self.query

    @property
    def is_sql(self) -> bool:
        return bool(self._given["sql"])

    @property
    def is_seed(self) -> bool:
        return bool(self._given["kind"] == "SEED")

    @property
    def is_python(self) -> bool:
        return isinstance(self, PythonModel)


class SqlModel(LintedModel):
    """A model that is a query."""


class SeedModel(LintedModel):
    """A model that is a CSV file."""


class PythonModel(LintedModel):
    """A model that is a Python function."""


class ExternalModel(LintedModel):
    """An external table."""


KINDS: dict[str, type[LintedModel]] = {
    "sql": SqlModel,
    "seed": SeedModel,
    "python": PythonModel,
    "external": ExternalModel,
}


class LintContext:
    """The project as a rule sees it: all its models."""

    def __init__(self, models: Mapping[str, LintedModel]) -> None:
        self.models = dict(models)

    def get_model(self, name: str, *_: Any, **__: Any) -> LintedModel | None:
        return self.models.get(name.replace('"', "").lower())


def check_models(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the violations of each rule in the models that it checks, as JSON data."""
    models = {model["name"]: KINDS[model["body"]](model, request["root"]) for model in request["models"]}
    context = LintContext(models)
    violations = []
    for rule in request["rules"]:
        made = getattr(importlib.import_module(module_name(rule["path"])), rule["class_name"])(context)
        for name in rule["models"]:
            for violation in _list_violations(made.check_model(models[name]), rule["class_name"]):
                start = violation.violation_range.start if violation.violation_range is not None else None
                place = {"line": start.line + 1, "column": start.character + 1} if start else {}
                violations.append(
                    {"rule": rule["name"], "model": name, "message": str(violation.violation_msg), **place}
                )
    return violations


def install_rules() -> None:
    """Add the classes that rules import to the modules `sqlmesh` and `mergeplan`."""
    rule = {rule_class.__name__: rule_class for rule_class in (Rule, RuleViolation, Position, Range, Fix, TextEdit)}
    for root in ("sqlmesh", "mergeplan"):
        for name in ("core.linter", "core.linter.rule", "core.linter.definition"):
            add_module(f"{root}.{name}", rule, package=True)
        models = {"Model": LintedModel, **{model_class.__name__: model_class for model_class in KINDS.values()}}
        for name in ("core.model", "core.model.definition"):
            sys.modules[f"{root}.{name}"].__dict__.update(models)
        for name in ("core.context", ""):
            module = sys.modules[f"{root}.{name}".rstrip(".")]
            module.__dict__.update({"Context": LintContext, "GenericContext": LintContext})


def _list_violations(result: Any, rule: str) -> Iterable[RuleViolation]:
    several = result if isinstance(result, list | tuple) else [] if result is None else [result]
    for violation in several:
        if not isinstance(violation, RuleViolation):
            kind = type(violation).__name__
            raise TypeError(f"`{rule}` returned a {kind}: return `self.violation(...)`, a list of them, or None")
    return several


def _data_type(kind: str) -> exp.DataType:
    from sqlglot import exp

    return exp.DataType.build(kind or "unknown", dialect="spark")
