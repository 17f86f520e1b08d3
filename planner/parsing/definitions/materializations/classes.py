"""The custom materializations of a project: the classes in materializations/, found without running them.

A class is one that SQLMesh would find: it derives from `CustomMaterialization`, and has the name in its `NAME` or else
its own name, in any case. It is refused if its file or the class might change what its `insert` does.

The class is read, not run with a stand-in for the adapter as config.py is. A run shows once what `insert` does, but
`insert` is called for every batch, on other days and over other rows. Code that depends on the clock, a file or its
last call would write rows that differ from the plan. Reading sees every statement, and refuses those that may decide.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.parsing.definitions.materializations import names as code_names
from mergeplan.planner.parsing.definitions.materializations.calls import Write
from mergeplan.planner.parsing.definitions.materializations.names import Names
from mergeplan.planner.parsing.definitions.materializations.values import NotUnderstood, Scope, Value, code_excerpt
from mergeplan.planner.parsing.definitions.materializations.writes import infer_write
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
    """A class of a file, by its name."""

    name: str
    path: str
    node: ast.ClassDef
    tree: ast.Module
    names: Names

    def write(self, properties: Mapping[str, Value]) -> Write:
        """Return the write for a model with these `materialization_properties`; raise NotUnderstood if unclear."""
        node, tree = self.node, self.tree
        if stray := [statement for statement in tree.body if not code_names.only_defines(statement, self.names)]:
            raise NotUnderstood(stray[0], f"{code_excerpt(stray[0])} runs when the file is imported")
        if node not in tree.body:
            raise NotUnderstood(node, f"the class `{node.name}` is not defined at the top of its file")
        hoisted = _kind_properties(_kind_of(node, tree, self.names), self.names)
        return infer_write(_find_insert(node), Scope(replace(self.names, hoisted=hoisted), properties))


@dataclass(frozen=True)
class Materializations:
    """The materializations of a project: the texts of its files by path, read once a model needs one."""

    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """A hash over all that a model of kind CUSTOM may depend on."""
        return digest(*(part for pair in self.texts.items() for part in pair))

    @cached_property
    def classes(self) -> tuple[Materialization, ...]:
        """The classes of all files; ProjectError if a file might hide some: SQLMesh could not load it either."""
        materializations: list[Materialization] = []
        for path, text in self.texts.items():
            try:
                materializations += _find_classes(path, ast.parse(text))
            except (SyntaxError, ValueError, RecursionError) as error:
                place = Place(path, getattr(error, "lineno", None) or 1)
                raise ProjectError(f"This is not Python: {getattr(error, 'msg', error)}.", place=place) from None
            except NotUnderstood as error:
                message = f"The materializations of this file cannot be read: {error.why}."
                raise ProjectError(message, place=Place(path, error.line)) from None
        return tuple(materializations)

    def find(self, name: str, place: Place) -> Materialization:
        """Return the one class of this name, in any case; raise ProjectError if there is none or more than one."""
        matches = [materialization for materialization in self.classes if materialization.name.lower() == name.lower()]
        if not matches:
            hint = did_you_mean(name, [materialization.name for materialization in self.classes])
            message = f"There is no materialization `{name}` in materializations/."
            raise ProjectError(message, place=place, hint=hint or "Put the file of its class there.")
        if len(matches) > 1:
            places = " and ".join(
                f"{materialization.path}:{materialization.node.lineno}" for materialization in matches
            )
            raise ProjectError(f"There are two materializations `{name}`: {places}.", place=place)
        return matches[0]


NONE = Materializations()


def _find_classes(path: str, tree: ast.Module) -> Iterator[Materialization]:
    names = code_names.names_of(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and _is_one(node, names):
            yield Materialization(_materialization_name(node), path, node, tree, names)


def _is_one(node: ast.ClassDef, names: Names) -> bool:
    """Return True for a class that SQLMesh finds: a direct subclass, or any class with an `insert`."""
    return any(
        code_names.import_path(base, names).endswith(f".{BASE}") for base in map(_strip_subscript, node.bases)
    ) or any(isinstance(statement, ast.FunctionDef) and statement.name == "insert" for statement in node.body)


def _strip_subscript(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Subscript) else node


def _materialization_name(node: ast.ClassDef) -> str:
    name = node.name
    for statement in node.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id="NAME")], value=value)
                | ast.AnnAssign(target=ast.Name(id="NAME"), value=ast.expr() as value)
            ):
                if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
                    raise NotUnderstood(statement, f"the name of `{node.name}` is computed")
                name = value.value
    return name


def _find_insert(node: ast.ClassDef) -> ast.FunctionDef:
    function = None
    for statement in node.body:
        match statement:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                continue
            case ast.Assign(targets=[ast.Name(id="NAME")]) | ast.AnnAssign(target=ast.Name(id="NAME")):
                continue
            case ast.FunctionDef(name="insert") if function is None:
                function = statement
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                raise NotUnderstood(statement, f"the class `{node.name}` has `{name}` beside `insert`")
            case _:
                raise NotUnderstood(statement, f"the class `{node.name}` has {code_excerpt(statement)} beside `insert`")
    if function is None:
        raise NotUnderstood(node, f"the class `{node.name}` has no `insert`")
    return function


def _kind_of(node: ast.ClassDef, tree: ast.Module, names: Names) -> ast.ClassDef | None:
    """Return the subclass of CustomKind that parametrizes a class, or None; raise NotUnderstood for another base."""
    if node.decorator_list or node.keywords or len(node.bases) != 1:
        raise NotUnderstood(node, f"the class `{node.name}` derives from more than `{BASE}`")
    base = node.bases[0]
    if not code_names.is_sqlmesh_name(_strip_subscript(base), BASE, names):
        raise NotUnderstood(
            node, f"the class `{node.name}` derives from {code_excerpt(base)} and not from `{BASE}` itself"
        )
    if not isinstance(base, ast.Subscript) or code_names.is_sqlmesh_name(base.slice, KIND, names):
        return None
    kinds = [statement for statement in tree.body if isinstance(statement, ast.ClassDef)
             and isinstance(base.slice, ast.Name) and statement.name == base.slice.id]  # fmt: skip
    if len(kinds) != 1 or len(kinds[0].bases) != 1 or not code_names.is_sqlmesh_name(kinds[0].bases[0], KIND, names):
        raise NotUnderstood(node, f"{code_excerpt(base.slice)} is no class of this file that derives from `{KIND}`")
    return kinds[0]


def _kind_properties(kind: ast.ClassDef | None, names: Names) -> dict[str, ast.expr]:
    """Return the expressions of a kind's properties; raise NotUnderstood for anything that might change plans."""
    properties: dict[str, ast.expr] = {}
    if kind is None:
        return properties
    if kind.decorator_list or kind.keywords:
        raise NotUnderstood(kind, f"the class `{kind.name}` is no plain subclass of `{KIND}`")
    for statement in kind.body:
        match statement:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                continue
            case ast.AnnAssign(target=ast.Name(id=name), value=None) if name.startswith("_"):
                continue
            case ast.FunctionDef(decorator_list=[ast.Name(id="property")], name=name) if _is_free(name, properties):
                properties[name] = _return_value(statement)
            case ast.FunctionDef(decorator_list=[ast.Call(func=ast.Name(id=how))]) if (
                names.imports.get(how) == "pydantic.model_validator"
            ):
                properties |= _validator_fields(statement, properties)
            case _:
                raise NotUnderstood(
                    statement, f"the class `{kind.name}` has {code_excerpt(statement)}, which mergeplan does not read"
                )
    return properties


def _is_free(name: str, fields: Mapping[str, ast.expr]) -> bool:
    return name not in OWN and not name.startswith(_OWN_BEGINS) and name not in fields


def _return_value(function: ast.FunctionDef) -> ast.expr:
    body = [statement for statement in function.body if not code_names.is_text(statement)]
    match body:
        case [ast.Return(value=ast.expr() as value)] if [argument.arg for argument in function.args.args] == ["self"]:
            return value
    raise NotUnderstood(function, f"`{function.name}` does more than return a value")


def _validator_fields(function: ast.FunctionDef, fields: Mapping[str, ast.expr]) -> dict[str, ast.expr]:
    """Return the fields beginning with `_` that a validator of a kind sets; its checks are SQLMesh's concern."""
    set_fields: dict[str, ast.expr] = {}
    if [argument.arg for argument in function.args.args] != ["self"] or len(function.decorator_list) != 1:
        raise NotUnderstood(function, f"`{function.name}` is no validator that mergeplan reads")
    for statement in function.body:
        match statement:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value) if (
                name.startswith("_") and not name.startswith("__") and name not in set_fields and name not in fields
            ):
                set_fields[name] = value
            case ast.If(body=[ast.Raise()], orelse=[]) | ast.Assert() | ast.Return(value=ast.Name(id="self")):
                continue
            case _ if not code_names.is_text(statement):
                raise NotUnderstood(statement, f"{code_excerpt(statement)} is no statement that mergeplan reads")
    return set_fields
