"""The linter rules of a project: `linter` in config.yaml, `ignored_rules` of a model, names in any case."""

import ast
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.definitions.properties import rule_name
from mergeplan.planner.parsing.files.schema import LinterConfig
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.parsing.sql.yaml_documents import Document

RULES = {
    "ambiguousorinvalidcolumn": "Every column is of exactly one table that is read, and properties name outputs.",
    "cronintervalalignment": "A model's parents are due at least as often as the model.",
    "invalidselectstarexpansion": "The columns of `SELECT *` are known.",
    "noambiguousprojections": "Each output column has a unique name.",
    "nomissingaudits": "A model has audits.",
    "nomissingexternalmodels": "Every table that is read is a model or declared in external_models.yaml.",
    "nomissingunittest": "A model has a unit test.",
    "noselectstar": "The outermost SELECT names its columns.",
}
BY_NAME = {
    "nojoinwithoutcondition": "A join has a condition, or is a CROSS JOIN.",
    "nomissingdescription": "A model has a description.",
    "nomissingowner": "A model has an owner.",
}
REFUSED = "refusedmodel"
# These apply even if nothing names them, and if the linter is not enabled.
ALWAYS = {
    "misspelledtable": "No undefined table has a name that is almost that of a model.",
    "readsendedmodel": "A table is computed past the `end` of no model that it reads.",
    REFUSED: "Every model can be opened.",
}
BUILT_IN = {**RULES, **BY_NAME, **ALWAYS}
ALL = "all"
FIRST_COMMENT = re.compile(r"\s*(?:/\*.*?\*/|(?:--[^\n]*(?:\n|\Z))+)", re.DOTALL)


@dataclass(frozen=True)
class OwnRule:
    """A rule that the project defines in linter/: a class of a Python file, or the `query` of a SQL file."""

    name: str
    class_name: str
    place: Place
    query: str = ""
    description: str = ""

    @property
    def is_query(self) -> bool:
        return not self.class_name


@dataclass(frozen=True)
class Chosen:
    """The names of the rules that stop a plan and that warn, of custom rules (`own`), and of `ignored` ones."""

    errors: frozenset[str] = frozenset()
    warnings: frozenset[str] = frozenset()
    own: tuple[OwnRule, ...] = ()
    ignored: frozenset[str] = frozenset()

    @property
    def every(self) -> frozenset[str]:
        return self.errors | self.warnings


NONE = Chosen()


def own_rules(path: str, text: str) -> tuple[OwnRule, ...]:
    """Return the classes of a file that derive from `Rule`, without running it; raise ProjectError."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ProjectError(f"This is not Python: {error.msg}.", place=Place(path, error.lineno or 1)) from None
    names, rules = {"Rule"}, []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not names.isdisjoint(map(_base_name, node.bases)):
            names.add(node.name)
            rules.append(OwnRule(rule_name(node.name), node.name, Place(path, node.lineno)))
    return tuple(rules)


def query_rule(path: str, text: str) -> OwnRule:
    """Return the rule of a SQL file: it has the name of the file, and its first comment is its description."""
    comment = FIRST_COMMENT.match(text)
    words = [word for word in comment[0].split() if word.strip("-/*")] if comment else []
    return OwnRule(rule_name(PurePosixPath(path).stem), "", Place(path, 1), text, " ".join(words).strip("-/* "))


def select_rules(config: LinterConfig, document: Document, own: Mapping[str, OwnRule]) -> Chosen:
    """Return the rules that config.yaml selects, none if the linter is not `enabled`.

    ALL means all but those of `BY_NAME`. Raise ProjectError for an unknown rule, and for one that is in both lists.
    """
    if not config.enabled:
        return NONE
    lists = {
        key: _rule_names(key, getattr(config, key), document, own) for key in ("rules", "warn_rules", "ignored_rules")
    }
    left_out = lists["ignored_rules"]
    errors, warnings = lists["rules"] - left_out, lists["warn_rules"] - left_out
    if duplicates := sorted(errors & warnings):
        message = f"`{duplicates[0]}` is in both `rules` and `warn_rules`: remove it from one of them."
        raise document.error(("linter", "warn_rules"), message)
    used = tuple(rule for name, rule in sorted(own.items()) if name in errors | warnings)
    return Chosen(frozenset(errors), frozenset(warnings), used, frozenset(left_out))


def check_ignored(model: Model, own: Collection[str]) -> None:
    for name in model.checks.ignored_rules:
        if name != ALL and name not in {*BUILT_IN, *own}:
            place = model.locate("ignored_rules", in_block=True)
            raise ProjectError(
                f"There is no rule `{name}`.", place=place, hint=did_you_mean(name, {*BUILT_IN, *own, "ALL"})
            )


def applicable_rules(rules: Chosen, model: Model) -> Chosen:
    ignored = frozenset(model.checks.ignored_rules)
    if ALL in ignored:
        return Chosen(ignored=frozenset(ALWAYS))
    return Chosen(rules.errors - ignored, rules.warnings - ignored, rules.own, rules.ignored | ignored)


def _rule_names(key: str, value: Iterable[str] | str, document: Document, own: Collection[str]) -> set[str]:
    names: set[str] = set()
    for index, text in enumerate((value,) if isinstance(value, str) else value):
        name = rule_name(text)
        if name == ALL:
            names |= {*RULES, *own}
        elif name in BUILT_IN or name in own:
            names.add(name)
        else:
            hint = did_you_mean(name, {*BUILT_IN, *own, "ALL"})
            raise document.error(("linter", key, index), f"There is no rule `{text}`.", hint)
    return names


def _base_name(base: ast.expr) -> str:
    return base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
