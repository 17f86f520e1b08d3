"""The custom materializations of a project: the classes in materializations/, found without running them.

A class is one that SQLMesh would find: it derives from `CustomMaterialization`, and is called by its `NAME` or else by
its own name, in any case. What of its file or of the class might change what its `insert` does refuses it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.parsing.definitions.materializations.calls import Write
from mergeplan.planner.parsing.definitions.materializations.names import (
    Names,
    dotted,
    is_text,
    names_of,
    of_sqlmesh,
    only_defines,
)
from mergeplan.planner.parsing.definitions.materializations.values import NotUnderstood, Scope, Value, shown
from mergeplan.planner.parsing.definitions.materializations.writes import written
from mergeplan.planner.parsing.sql.tokens import did_you_mean

BASE, KIND = "CustomMaterialization", "CustomKind"
# Attributes of a kind that SQLMesh itself asks for.
OWN = frozenset(
    """name dialect materialization materialization_properties materialization_properties_ forward_only
    disable_restatement batch_size batch_concurrency lookback auto_restatement_cron auto_restatement_intervals
    time_column managed_columns on_destructive_change on_additive_change data_hash_values metadata_hash_values
    full_history_restatement_only only_execution_time to_expression json dict copy""".split()
)
_OWN_BEGINS = ("is_", "supports_", "model_", "_")


@dataclass(frozen=True)
class Materialization:
    """A class: its name, its place, its `insert`, and what stops it from being read, if anything does."""

    name: str
    path: str
    line: int
    insert: ast.FunctionDef | None = None
    names: Names = field(default_factory=Names)
    stopped: NotUnderstood | None = None

    def write(self, properties: Mapping[str, Value]) -> Write:
        """What it writes for a model with these `materialization_properties`; NotUnderstood."""
        if self.stopped:
            raise self.stopped
        assert self.insert is not None
        return written(self.insert, Scope(self.names, properties))


@dataclass(frozen=True)
class Materializations:
    """Those of a project: the texts of its files by path, which are read once a model asks for one."""

    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """A hash over all that a model of kind CUSTOM may rest on."""
        return digest(*(part for pair in self.texts.items() for part in pair))

    @cached_property
    def classes(self) -> tuple[Materialization, ...]:
        """The classes of all files; ProjectError when a file might hide some, as SQLMesh could not load it either."""
        found: list[Materialization] = []
        for path, text in self.texts.items():
            try:
                found += _classes(path, ast.parse(text))
            except (SyntaxError, ValueError, RecursionError) as error:
                place = Place(path, getattr(error, "lineno", None) or 1)
                raise ProjectError(f"This is not Python: {getattr(error, 'msg', error)}.", place=place) from None
            except NotUnderstood as error:
                message = f"The materializations of this file cannot be read: {error.why}."
                raise ProjectError(message, place=Place(path, error.line)) from None
        return tuple(found)

    def named(self, name: str, place: Place) -> Materialization:
        """The one class of this name, in any case; ProjectError when there is none, or more than one."""
        found = [each for each in self.classes if each.name.lower() == name.lower()]
        if not found:
            hint = did_you_mean(name, [each.name for each in self.classes])
            message = f"There is no materialization `{name}` in materializations/."
            raise ProjectError(message, place=place, hint=hint or "Put the file of its class there.")
        if len(found) > 1:
            places = " and ".join(f"{each.path}:{each.line}" for each in found)
            raise ProjectError(f"There are two materializations `{name}`: {places}.", place=place)
        return found[0]


NONE = Materializations()


def _classes(path: str, tree: ast.Module) -> Iterator[Materialization]:
    names = names_of(tree)
    stray = next((each for each in tree.body if not only_defines(each, names)), None)
    top = {id(each) for each in tree.body}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef) or not _is_one(node, names):
            continue
        found = Materialization(_called(node), path, node.lineno, names=names)
        try:
            if stray is not None:
                raise NotUnderstood(stray, f"{shown(stray)} runs when the file is imported")
            if id(node) not in top:
                raise NotUnderstood(node, f"the class `{node.name}` is not defined at the top of its file")
            hoisted = _hoisted(_kind_of(node, tree, names), names)
            yield replace(found, insert=_insert(node), names=replace(names, hoisted=hoisted))
        except NotUnderstood as why:
            yield replace(found, stopped=why)


def _is_one(node: ast.ClassDef, names: Names) -> bool:
    """True for a class that SQLMesh finds, and for one that another class stands above."""
    return any(dotted(each, names).endswith(f".{BASE}") for each in map(_base, node.bases)) or any(
        isinstance(each, ast.FunctionDef) and each.name == "insert" for each in node.body
    )


def _base(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Subscript) else node


def _called(node: ast.ClassDef) -> str:
    """The name of a materialization; NotUnderstood when it is computed."""
    name = node.name
    for each in node.body:
        match each:
            case (
                ast.Assign(targets=[ast.Name(id="NAME")], value=value)
                | ast.AnnAssign(target=ast.Name(id="NAME"), value=ast.expr() as value)
            ):
                if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
                    raise NotUnderstood(each, f"the name of `{node.name}` is computed")
                name = value.value
    return name


def _insert(node: ast.ClassDef) -> ast.FunctionDef:
    """The `insert` of a class that has nothing else; NotUnderstood."""
    found = None
    for each in node.body:
        match each:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                continue
            case ast.Assign(targets=[ast.Name(id="NAME")]) | ast.AnnAssign(target=ast.Name(id="NAME")):
                continue
            case ast.FunctionDef(name="insert") if found is None:
                found = each
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                raise NotUnderstood(each, f"the class `{node.name}` has `{name}` beside `insert`")
            case _:
                raise NotUnderstood(each, f"the class `{node.name}` has {shown(each)} beside `insert`")
    if found is None:
        raise NotUnderstood(node, f"the class `{node.name}` has no `insert`")
    return found


def _kind_of(node: ast.ClassDef, tree: ast.Module, names: Names) -> ast.ClassDef | None:
    """The subclass of CustomKind that a class is generic over, if it is; NotUnderstood for another base."""
    if node.decorator_list or node.keywords or len(node.bases) != 1:
        raise NotUnderstood(node, f"the class `{node.name}` derives from more than `{BASE}`")
    base = node.bases[0]
    if not of_sqlmesh(_base(base), BASE, names):
        raise NotUnderstood(node, f"the class `{node.name}` derives from {shown(base)} and not from `{BASE}` itself")
    if not isinstance(base, ast.Subscript) or of_sqlmesh(base.slice, KIND, names):
        return None
    found = [each for each in tree.body if isinstance(each, ast.ClassDef)
             and isinstance(base.slice, ast.Name) and each.name == base.slice.id]  # fmt: skip
    if len(found) != 1 or len(found[0].bases) != 1 or not of_sqlmesh(found[0].bases[0], KIND, names):
        raise NotUnderstood(node, f"{shown(base.slice)} is no class of this file that derives from `{KIND}`")
    return found[0]


def _hoisted(kind: ast.ClassDef | None, names: Names) -> dict[str, ast.expr]:
    """The properties of a kind of the project's own, each with what it returns; NotUnderstood for anything that might
    change how SQLMesh plans its models."""
    found: dict[str, ast.expr] = {}
    if kind is None:
        return found
    if kind.decorator_list or kind.keywords:
        raise NotUnderstood(kind, f"the class `{kind.name}` is no plain subclass of `{KIND}`")
    for each in kind.body:
        match each:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                continue
            case ast.AnnAssign(target=ast.Name(id=name), value=None) if name.startswith("_"):
                continue
            case ast.FunctionDef(decorator_list=[ast.Name(id="property")], name=name) if _is_free(name, found):
                found[name] = _returned(each)
            case ast.FunctionDef(decorator_list=[ast.Call(func=ast.Name(id=how))]) if (
                names.imports.get(how) == "pydantic.model_validator"
            ):
                found |= _validated(each, found)
            case _:
                raise NotUnderstood(each, f"the class `{kind.name}` has {shown(each)}, which mergeplan does not read")
    return found


def _is_free(name: str, found: Mapping[str, ast.expr]) -> bool:
    return name not in OWN and not name.startswith(_OWN_BEGINS) and name not in found


def _returned(function: ast.FunctionDef) -> ast.expr:
    """What a property returns."""
    body = [each for each in function.body if not is_text(each)]
    match body:
        case [ast.Return(value=ast.expr() as value)] if [each.arg for each in function.args.args] == ["self"]:
            return value
    raise NotUnderstood(function, f"`{function.name}` does more than return a value")


def _validated(function: ast.FunctionDef, found: Mapping[str, ast.expr]) -> dict[str, ast.expr]:
    """What a validator of a kind keeps in names that begin with `_`; what it checks is for SQLMesh."""
    kept: dict[str, ast.expr] = {}
    if [each.arg for each in function.args.args] != ["self"] or len(function.decorator_list) != 1:
        raise NotUnderstood(function, f"`{function.name}` is no validator that mergeplan reads")
    for each in function.body:
        match each:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value) if (
                name.startswith("_") and not name.startswith("__") and name not in kept and name not in found
            ):
                kept[name] = value
            case ast.If(body=[ast.Raise()], orelse=[]) | ast.Assert() | ast.Return(value=ast.Name(id="self")):
                continue
            case _ if not is_text(each):
                raise NotUnderstood(each, f"{shown(each)} is no statement that mergeplan reads")
    return kept
