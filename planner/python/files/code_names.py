"""The meaning of the names in a piece of code: things of other packages, values of the project, or neither."""

import ast
import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from mergeplan.planner.python.modules import Import, Module, find_imports
from mergeplan.planner.python.project_modules import ProjectModules

Code = ast.stmt | ast.Module
BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__package__"}
_DEEPEST = 20


@dataclass(frozen=True)
class Item:
    """The value that a loop binds: an item of `of`; of a mapping's `items()` the key (0) or the value (1)."""

    of: ast.expr
    at: int = -1


Value = ast.expr | Item | None  # None: bound to a value without an expression
Bindings = Mapping[str, tuple[Value, ...]]


@dataclass(frozen=True)
class OtherName:
    """A name of another package, `pandas.read_csv`; for a module itself, the name of the module."""

    dotted: str


@dataclass(frozen=True)
class OwnName:
    """A name of a module of the project; '' for the module itself. `rest` are the attributes that follow it."""

    module: str
    name: str
    rest: tuple[str, ...] = ()


Meaning = OtherName | OwnName


@dataclass(frozen=True)
class Names:
    node: ast.AST
    module: Module
    modules: ProjectModules

    @cached_property
    def imports(self) -> Mapping[str, tuple[Import, ...]]:
        if isinstance(self.node, ast.Module):
            return {}
        package, imports = self.module.path.endswith("/__init__.py"), dict[str, tuple[Import, ...]]()
        for part in ast.walk(self.node):
            if isinstance(part, ast.Import | ast.ImportFrom):
                for bound, imported in find_imports(part, self.module.name, package):
                    imports[bound] = (*imports.get(bound, ()), imported)
        return imports

    @cached_property
    def value_bindings(self) -> Bindings:
        """The values that statements give to names, those of the module among them."""
        if isinstance(self.node, ast.Module):
            return module_bindings(self.node)
        outer, inner = module_bindings(self.module.tree), collect_bindings(self.node)
        return {name: (*outer.get(name, ()), *inner.get(name, ())) for name in (*outer, *inner)}

    def meanings(self, chain: list[str], depth: int = 0) -> Iterator[Meaning]:
        """Yield the possible meanings of `a.b.c`, if `a` is imported, or defined in the module."""
        first, *attributes = chain
        origins = (*self.module.imports.get(first, ()), *self.imports.get(first, ()))
        if first in self.module.defined:
            yield OwnName(self.module.name, first, tuple(attributes))
        elif not origins and first not in self.value_bindings and not first.startswith("_"):  # which a star leaves out
            stars = (*self.module.imports.get("*", ()), *self.imports.get("*", ()))
            origins = tuple(Import(star.module, first) for star in stars)
        for origin in origins:
            names = [*origin.module.split("."), *([origin.name] if origin.name else []), *attributes]
            yield from self._resolve_import(names, depth)
        if first == "open" and first not in {*self.module.imports, *self.imports, *self.module.defined}:
            yield OtherName("builtins.open")

    def _resolve_import(self, names: list[str], depth: int) -> Iterator[Meaning]:
        if not self.modules.is_own(".".join(names)):
            yield OtherName(".".join(names))
            return
        for end in range(len(names), 0, -1):
            name = ".".join(names[:end])
            if name not in self.modules:
                continue
            module, attributes = self.modules[name], names[end:]
            if not attributes or depth > _DEEPEST:
                yield OwnName(name, "")
                return
            yield from Names(module.tree, module, self.modules).meanings(attributes, depth + 1)
            return
        yield OwnName(".".join(names), "")

    def is_bound(self, name: str) -> bool:
        """Return True if a statement of the code or of its module binds the name."""
        is_local = name in self.value_bindings or name in self.imports or name in self.module.defined
        return is_local or name in self.module.imports or name in _all_bound(self.module.tree)


def chain_of(node: ast.AST) -> list[str]:
    """Return `a.b.c` as its parts; [] if it does not begin with a name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else []


@lru_cache(maxsize=4096)  # trees are compared by identity, and never changed
def module_bindings(tree: ast.Module) -> Bindings:
    """Return the values of names that statements of the module itself bind, outside of its functions."""
    return collect_bindings(tree, deep=False)


def collect_bindings(node: ast.AST, *, deep: bool = True) -> Bindings:
    """Return, for each name, the value of each statement that binds it."""
    values: dict[str, list[Value]] = {}
    for name, value in (
        pair for part in (ast.walk(node) if deep else ast.iter_child_nodes(node)) for pair in _find_bindings(part)
    ):
        values.setdefault(name, []).append(value)
    stored: dict[str, int] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            stored[part.id] = stored.get(part.id, 0) + 1
            if deep:
                values.setdefault(part.id, [])
    for name, expressions in values.items():  # an unpacking, or a branch of the module, binds it too
        if stored.get(name, 0) != len([value for value in expressions if value is not None]):
            expressions.append(None)
    return {name: tuple(expressions) for name, expressions in values.items()}


def _find_bindings(node: ast.AST) -> Iterator[tuple[str, Value]]:
    match node:
        case ast.withitem(context_expr=value, optional_vars=ast.Name(id=name)):
            yield name, value
        case ast.Assign(targets=targets, value=value):
            yield from ((target.id, value) for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            yield name, value
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            yield from _loop_bindings(target, value)
        case ast.arg(arg=name):
            yield name, None
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, None
        case (
            ast.ExceptHandler(name=str() as name)
            | ast.MatchAs(name=str() as name)
            | ast.MatchStar(name=str() as name)
            | ast.MatchMapping(rest=str() as name)
        ):
            yield name, None


def _loop_bindings(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, Value]]:
    match target, value:
        case ast.Name(id=name), _:
            yield name, Item(value)
        case (
            ast.Tuple(elts=[ast.Name(id=key), ast.Name(id=item)]),
            ast.Call(func=ast.Attribute(value=mapping, attr="items")),
        ):
            yield key, Item(mapping, 0)
            yield item, Item(mapping, 1)


@lru_cache(maxsize=4096)
def _all_bound(tree: ast.Module) -> frozenset[str]:
    """Return every name that a statement of the module binds, wherever it is."""
    names = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}
    for part in ast.walk(tree):
        if isinstance(part, ast.alias):
            names.add(part.asname or part.name.split(".")[0])
        names |= {name for name, _ in _find_bindings(part)}
    return frozenset(names)
