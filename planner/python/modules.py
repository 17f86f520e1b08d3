"""A project's Python files as modules: what each defines by name, what it imports, whether its import has effects."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from mergeplan.planner.errors import Place, ProjectError

# Functions without side effects, which a module may call while it is imported.
PURE_CALLS = frozenset(
    """frozenset tuple list dict set str int float bool bytes range sorted len min max sum zip enumerate
    re.compile logging.getLogger getLogger Path pathlib.Path PurePath date datetime timedelta timezone datetime.date
    datetime.datetime datetime.timedelta datetime.timezone Decimal decimal.Decimal Fraction TypeVar t.TypeVar
    typing.TypeVar NewType t.NewType typing.NewType namedtuple collections.namedtuple ZoneInfo property field
    dataclass dataclasses.dataclass dataclasses.field Enum auto
    StructType StructField StringType IntegerType LongType DoubleType DateType TimestampType BooleanType""".split()
)
PURE_DECORATORS = frozenset(
    """staticmethod classmethod property dataclass dataclasses.dataclass cache lru_cache
    functools.cache functools.lru_cache wraps functools.wraps contextmanager contextlib.contextmanager
    abstractmethod abc.abstractmethod total_ordering functools.total_ordering overload typing.overload
    t.overload override typing.override t.override""".split()
)
PURE_BASES = frozenset(
    """object Exception ValueError RuntimeError TypeError Enum enum.Enum StrEnum enum.StrEnum IntEnum enum.IntEnum
    ABC abc.ABC NamedTuple typing.NamedTuple t.NamedTuple TypedDict typing.TypedDict t.TypedDict Protocol
    typing.Protocol t.Protocol Generic str int float dict list tuple""".split()
)
CALLED_BY_CLASSES = ("__class_getitem__", "__init_subclass__", "__set_name__")  # without a visible call
CALLED_BY_ENUMS = ("__new__", "__init__", "_generate_next_value_")  # for each member, when the class is defined
OURS = frozenset({"sqlmesh", "mergeplan"})  # the packages that a project imports for models and macros
BUILTINS = frozenset(dir(builtins))
# What may call a method of its operands.
OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.FormattedValue, ast.comprehension, ast.Starred)
_WELL_KNOWN = sys.stdlib_module_names | OURS | {"sqlglot", "pyspark", "pandas", "numpy"}


@dataclass(frozen=True)
class Import:
    """A name that an import binds: the attribute `name` of `module`, or the module itself if `name` is ''."""

    module: str
    name: str = ""


@dataclass(frozen=True)
class Module:
    """One file of Python as a module.

    `defined` is name -> the statements that bind it, `imports` is name -> import, `runs` are the modules that its
    import runs, in their order. `acts` says that its import does more than define each name once.
    """

    name: str
    path: str
    tree: ast.Module
    defined: Mapping[str, tuple[ast.stmt, ...]]
    imports: Mapping[str, tuple[Import, ...]]
    runs: tuple[str, ...]
    acts: bool


@dataclass
class _Found:
    defined: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, list[Import]] = field(default_factory=dict)
    runs: list[str] = field(default_factory=list)
    acts: bool = False


def module_name(path: str) -> str:
    """Return the name of a module: `macros/utils.py` -> `macros.utils`, `lib/__init__.py` -> `lib`."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@lru_cache(maxsize=2048)
def read_module(path: str, text: str) -> Module:
    """Return the module of a file; raise ProjectError at the line that is not Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        reason = getattr(error, "msg", None) or str(error)
        raise ProjectError(f"This is not Python: {reason}.", place=Place(path, line)) from None
    contents = _Found()
    package = path.endswith("/__init__.py")
    for statement in tree.body:
        _note_statement(statement, module_name(path), package, contents)
    return Module(
        module_name(path),
        path,
        tree,
        {name: tuple(nodes) for name, nodes in contents.defined.items()},
        {name: tuple(bindings) for name, bindings in contents.imports.items()},
        tuple(dict.fromkeys(contents.runs)),
        contents.acts or _binds_again(contents),
    )


def _binds_again(facts: _Found) -> bool:
    # What stands between two bindings of a name, a default or another constant, takes the first one.
    count = sum(map(len, facts.defined.values())) + sum(len(set(origins)) for origins in facts.imports.values())
    return count > len(facts.defined.keys() | facts.imports.keys())


def _note_statement(statement: ast.stmt, module: str, package: bool, facts: _Found) -> None:
    match statement:
        case ast.Import() | ast.ImportFrom():
            for bound, origin in find_imports(statement, module, package):
                facts.runs += [origin.module, f"{origin.module}.{origin.name}"]
                facts.acts = facts.acts or bound == "*"
                facts.imports.setdefault(bound, []).append(origin)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            facts.defined.setdefault(statement.name, []).append(statement)
            facts.acts = facts.acts or not _is_quiet_function(statement, facts)
        case ast.ClassDef():
            facts.defined.setdefault(statement.name, []).append(statement)
            facts.acts = facts.acts or not _is_quiet_class(statement, facts)
        case ast.Assign(targets=targets, value=value) if all(isinstance(target, ast.Name) for target in targets):
            for target in targets:
                assert isinstance(target, ast.Name)
                facts.defined.setdefault(target.id, []).append(statement)
            facts.acts = facts.acts or not _makes_a_value(value, facts)
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=annotated_value):
            facts.defined.setdefault(name, []).append(statement)
            quiet = _makes_a_value(annotation, facts, is_type=True)
            quiet = quiet and (annotated_value is None or _makes_a_value(annotated_value, facts))
            facts.acts = facts.acts or not quiet
        case ast.Expr(value=ast.Constant()) | ast.Pass():
            pass
        case ast.If(test=test, orelse=[]) if _never_holds(ast.unparse(test), facts):
            pass
        case _:
            facts.acts = True
            for node in ast.walk(statement):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    for bound, origin in find_imports(node, module, package):
                        facts.runs += [origin.module, f"{origin.module}.{origin.name}"]
                        facts.imports.setdefault(bound, []).append(origin)


def _never_holds(test: str, facts: _Found) -> bool:
    is_for_types = test in ("TYPE_CHECKING", "t.TYPE_CHECKING", "typing.TYPE_CHECKING") and _is_well_known(test, facts)
    return is_for_types or test == "__name__ == '__main__'"


def find_imports(statement: ast.Import | ast.ImportFrom, module: str, package: bool) -> Iterator[tuple[str, Import]]:
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            if alias.asname:
                yield alias.asname, Import(alias.name)
            else:
                yield alias.name.split(".")[0], Import(alias.name.split(".")[0])
                if "." in alias.name:
                    yield f"{alias.name}.", Import(alias.name)  # bound under no name of its own, and run
        return
    source = statement.module or ""
    if statement.level:
        parts = module.split(".")
        base = parts[: len(parts) - statement.level + (1 if package else 0)]
        source = ".".join([*base, *([source] if source else [])])
    for alias in statement.names:
        yield alias.asname or alias.name, Import(source, alias.name)


def says_only(decorator: ast.expr, imports: Mapping[str, Iterable[Import]], names: tuple[str, ...]) -> bool:
    """Return True for one of these decorators, `@model(...)` or `@sqlmesh.model(...)`, of one of these names."""
    called = _attribute_path(decorator.func if isinstance(decorator, ast.Call) else decorator).split(".")
    bound = tuple(imports.get(called[0], ()))
    if not bound or any(origin.module.split(".")[0] not in OURS for origin in bound):
        return False
    return (called[-1] if len(called) > 1 else bound[0].name) in names


def _is_quiet_function(node: ast.FunctionDef | ast.AsyncFunctionDef, facts: _Found, *, member: bool = False) -> bool:
    signature = node.args
    arguments = [*signature.posonlyargs, *signature.args, *signature.kwonlyargs, signature.vararg, signature.kwarg]
    annotations = [node.returns, *(argument.annotation for argument in arguments if argument is not None)]
    defaults = (*signature.defaults, *signature.kw_defaults)
    quiet = all(_is_quiet_decorator(decorator, facts, member=member) for decorator in node.decorator_list)
    quiet = quiet and all(_makes_a_value(part, facts) for part in defaults if part is not None)
    return quiet and all(_makes_a_value(part, facts, is_type=True) for part in annotations if part is not None)


def _is_quiet_decorator(node: ast.expr, facts: _Found, *, member: bool = False) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)] if isinstance(node, ast.Call) else []
    name = _attribute_path(called)
    is_quiet = says_only(node, facts.imports, ("model", "macro", "signal"))
    is_quiet = is_quiet or (name in PURE_DECORATORS and _is_well_known(name, facts))
    is_quiet = is_quiet or (member and name.endswith((".setter", ".getter")))
    return is_quiet and all(_makes_a_value(argument, facts) for argument in arguments)


def _is_quiet_class(node: ast.ClassDef, facts: _Found) -> bool:
    bases = [_attribute_path(base.value if isinstance(base, ast.Subscript) else base) for base in node.bases]
    if node.keywords or not all(base in PURE_BASES and _is_well_known(base, facts) for base in bases):
        return False
    if not all(_is_quiet_decorator(decorator, facts) for decorator in node.decorator_list):
        return False
    called = (*CALLED_BY_CLASSES, *(CALLED_BY_ENUMS if any(base.endswith("Enum") for base in bases) else ()))
    return all(_is_quiet_member(member, facts, called) for member in node.body)


def _is_quiet_member(node: ast.stmt, facts: _Found, called: tuple[str, ...]) -> bool:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return node.name not in called and _is_quiet_function(node, facts, member=True)
        case ast.Assign(targets=targets, value=value) if all(isinstance(target, ast.Name) for target in targets):
            return _makes_a_value(value, facts)
        case ast.AnnAssign(target=ast.Name(), annotation=annotation, value=value):
            quiet = _makes_a_value(annotation, facts, is_type=True)
            return quiet and (value is None or _makes_a_value(value, facts))
        case ast.Expr(value=ast.Constant()) | ast.Pass():
            return True
    return False


def _makes_a_value(node: ast.expr, facts: _Found, *, is_type: bool = False) -> bool:
    """Return True if evaluation has no side effects: only harmless calls, no walrus, no await.

    An operation on another module's object, such as `A >> B`, is one of its methods; `A | None` of a type is not.
    """
    for part in ast.walk(node):
        if _operates_on_others(part, facts) and not (is_type and isinstance(part, ast.BinOp)):
            return False
        if isinstance(part, ast.Call) and not _is_harmless(_attribute_path(part.func), facts):
            return False
        if isinstance(part, ast.Call) and any(keyword.arg in ("key", None) for keyword in part.keywords):
            return False  # what it is given is called
        if isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom):
            return False
    return True


def _operates_on_others(part: ast.AST, facts: _Found) -> bool:
    is_built_in = isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in BUILTINS
    if not (is_built_in or isinstance(part, OPERATIONS)):
        return False
    operands = [part.value] if isinstance(part, ast.Subscript) else [*ast.iter_child_nodes(part)]
    roots = {_attribute_path(operand).split(".")[0] for operand in operands if isinstance(operand, ast.expr)}
    origins = {origin.module.split(".")[0] for root in roots for origin in facts.imports.get(root, ())}
    return not origins <= _WELL_KNOWN


def _is_harmless(call_name: str, facts: _Found) -> bool:
    root = call_name.split(".")[0]
    origins = facts.imports.get(root, ())
    if origins and all(origin.module.split(".")[0] in (*OURS, "sqlglot") for origin in origins):
        return True
    return call_name in PURE_CALLS and _is_well_known(call_name, facts)


def _is_well_known(call_name: str, facts: _Found) -> bool:
    root = call_name.split(".")[0]
    origins = facts.imports.get(root, ())
    if root in facts.defined:
        return False
    return all(origin.module.split(".")[0] in _WELL_KNOWN for origin in origins) if origins else root in BUILTINS


def _attribute_path(node: ast.expr) -> str:
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""
