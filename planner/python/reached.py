"""The digest of an entry point's code: of everything in the project that it can reach, and nothing else.

Comments, formatting and docstrings do not count. A name is followed to what binds it, through functions, classes,
constants and imports; a module whose import does more than define counts whole, and so does one that is passed about
as a value. Code that looks for other code while it runs (`importlib`, `exec`, `globals()`, ...) counts as reaching
every Python file of the project, to the letter. More is counted than need be, never less.
"""

import ast
import re
import sys
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache

from mergeplan.planner.errors import Place
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.python.files.code_names import Code, chain_of
from mergeplan.planner.python.files.file_access import FileAccess
from mergeplan.planner.python.files.filereads import FileReads
from mergeplan.planner.python.modules import OURS, Import, Module, find_imports, module_name, says_only
from mergeplan.planner.python.project_modules import ProjectModules, Questions, module_names

# Names with which code can reach other code that it does not name: as names, and as attributes or imports.
SEEKING = frozenset(
    """exec eval compile globals locals vars __import__ importlib inspect pkgutil runpy imp ctypes gc traceback
    builtins __builtins__ pydoc doctest help linecache dis marshal __doc__ __spec__ __loader__""".split()
)
SEEKING_ATTRIBUTES = frozenset(
    """_getframe _current_frames modules __globals__ __dict__ __subclasses__ __doc__ __code__ __closure__ __import__
    __getattribute__ __mro__ __bases__ __builtins__ __func__ __self__ settrace setprofile meta_path path_hooks
    __loader__ __spec__ __traceback__ exc_info tb_frame f_globals f_locals f_builtins f_back gi_frame cr_frame
    ag_frame""".split()
)
CALLED = ("table", "resolve_table")
# strings in which a table may be named regardless of the environment
QUERIED = ("fetchdf", "fetch_pyspark_df", "sql", "table")
EVALUATED = (
    "query",
    "eval",
    "evaluate",
    "sql",
)  # of pandas, numexpr, duckdb: texts that read variables around the call
WORD = re.compile(r"[^\W\d]\w*")
PROSE = re.compile(r"[@\s]")  # no path, no name of a column
DOTTED = re.compile(r"\b[A-Za-z_]\w*\.[A-Za-z_]\w*\b")
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class Reached:
    """The code that an entry point reaches: its digest, files, and tables.

    `tables` are those it names, `unclear` are the lines where it names one by a computed value. `queried` may be names
    of tables in the texts of its queries.
    """

    digest: str
    tables: frozenset[str]
    unclear: tuple[Place, ...]
    files: frozenset[str]
    queried: tuple[tuple[str, Place], ...] = ()
    reads: FileReads = field(default_factory=FileReads)
    asked: Questions = field(default_factory=Questions)  # of the project, from whose answers all of this follows


@dataclass
class _Walk:
    modules: ProjectModules
    done: dict[tuple[str, str], str] = field(default_factory=dict)  # (module, name) -> what it is
    whole: set[str] = field(default_factory=set)
    run: dict[str, None] = field(default_factory=dict)  # in the order in which their import runs
    packages: set[str] = field(default_factory=set)  # of others: the first part of their names
    tables: set[str] = field(default_factory=set)
    unclear: list[Place] = field(default_factory=list)
    queried: list[tuple[str, Place]] = field(default_factory=list)
    seeks: bool = False
    reads: FileReads = field(default_factory=FileReads)

    def seek(self, name: str, place: Place) -> None:
        """Record that the code looks for other code, and so for any file, at this place."""
        self.seeks = self.reads.opens = True
        self.reads.unknown.append(FileAccess(name, place))


def trace_code(
    files: Mapping[str, str], path: str, entrypoint: str, versions: Callable[[str], str] = lambda _name: ""
) -> Reached:
    """Return what the function `entrypoint` of the file at `path` reaches in these files (path -> text).

    `versions` returns the installed version of a package. Raise ProjectError at a reached file that is not Python.
    """
    names = module_names(tuple(files))
    modules = ProjectModules(names, files)
    walk = _Walk(modules)
    if names.hides:
        walk.seek("import", Place(names.hides, 1))
    _run_module(walk, module_name(path))
    _name(walk, module_name(path), entrypoint, entry=True)
    parts = [f"python {RUNNING}"]
    for name in sorted(walk.packages):
        parts += [name, versions(name)]
    used = walk.run.keys() | {module for module, _ in walk.done}
    reached_files = frozenset(modules[name].path for name in used)
    if walk.seeks:
        reached_files = frozenset(files)
        parts += [part for name in sorted(files) for part in (name, files[name])]
    parts += [part for key, text in sorted(walk.done.items()) for part in (*key, text)]
    parts += [part for name in sorted(walk.whole) for part in (name, _normal_text(modules[name].tree))]
    acting = [name for name in walk.run if modules[name].acts]
    parts += ["order", *acting] if len(acting) > 1 else []
    return Reached(
        digest("code", *parts)[:32],
        frozenset(walk.tables),
        tuple(walk.unclear),
        reached_files,
        tuple(walk.queried),
        walk.reads,
        modules.questions(walk.packages, every=walk.seeks),
    )


def _run_module(walk: _Walk, name: str) -> None:
    """Count what an import of a module runs: the module, the packages around it, and its imports."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        module = ".".join(parts[:end])
        if module not in walk.modules or module in walk.run:
            continue
        walk.run[module] = None
        definition = walk.modules[module]
        for import_name in definition.runs:
            _run_import(walk, import_name)
        if definition.acts:
            _count_whole(walk, module)


def _run_import(walk: _Walk, name: str) -> None:
    root = name.split(".")[0]
    if name in walk.modules or root in walk.modules or walk.modules.has_folder(root):
        _run_module(walk, name)
    elif root and root not in OURS and root not in sys.stdlib_module_names:
        walk.packages.add(root)


def _count_whole(walk: _Walk, name: str) -> None:
    if name in walk.whole:
        return
    walk.whole.add(name)
    module = walk.modules[name]
    _follow_code(walk, module, module.tree)
    for definition in module.defined:
        _name(walk, name, definition)


def _name(walk: _Walk, module_of_it: str, name: str, *, entry: bool = False) -> None:
    key = (module_of_it, name)
    if key in walk.done:
        return
    module = walk.modules[module_of_it]
    nodes, module_imports = module.defined.get(name, ()), module.imports.get(name, ())
    nodes = tuple(_strip_decorators(node, module) for node in nodes) if entry else nodes
    walk.done[key] = " ".join(
        [*(f"{imported.module}:{imported.name}" for imported in module_imports), *map(_normal_text, nodes)]
    )
    for imported in module_imports:
        _count_import(walk, imported)
    for node in nodes:
        _follow_code(walk, module, node)
    if not nodes and not module_imports and "__getattr__" in module.defined:
        _count_whole(walk, module_of_it)


def _count_import(walk: _Walk, other: Import) -> None:
    """Count what an import binds; a module that is bound and used as a value counts whole."""
    _run_import(walk, other.module)
    if not other.name:
        return  # `_follow_code` sees which attributes of the module are used
    if f"{other.module}.{other.name}" in walk.modules:
        _run_import(walk, f"{other.module}.{other.name}")
    if other.module in walk.modules:
        _name(walk, other.module, other.name)


def _count_module(walk: _Walk, name: str) -> None:
    """Count a module of the project as a value: anything in it, and below it, may be used."""
    if name in walk.modules:
        _run_module(walk, name)
        _count_whole(walk, name)
    for submodule in walk.modules.below(name):
        _run_module(walk, submodule)
        _count_whole(walk, submodule)


def _follow_code(walk: _Walk, module: Module, node: Code) -> None:
    package = module.path.endswith("/__init__.py")
    walk.reads.look(node, module, walk.modules)
    local: dict[str, list[Import]] = {}
    for statement in ast.walk(node):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for bound, imported in find_imports(statement, module.name, package):
                local.setdefault(bound, []).append(imported)
                _run_import(walk, f"{imported.module}.{imported.name}" if imported.name else imported.module)
                _count_import(walk, imported)
                _note_seeking(walk, Place(module.path, statement.lineno), imported.module.split(".")[0], imported.name)
                if bound == "*" and imported.module in walk.modules:
                    _count_module(walk, imported.module)
    docs = {id(part.value) for part in ast.walk(node) if isinstance(part, ast.Expr)}
    inner: set[int] = set()  # the parts of chains that were followed as one
    for child in ast.walk(node):
        match child:
            case ast.Attribute():
                chain = chain_of(child)
                if id(child) not in inner and chain:
                    inner |= {id(part) for part in ast.walk(child)}
                    _count_chain(walk, module, local, chain, child.lineno)
                if child.attr in SEEKING_ATTRIBUTES:
                    walk.seek(child.attr, Place(module.path, child.lineno))
            case ast.Name(id=name):
                if id(child) not in inner:
                    _count_chain(walk, module, local, [name], child.lineno)
            case ast.Call():
                _record_call(walk, module, child)
            case ast.Constant(value=str() as text) if text.startswith("__") and text in SEEKING_ATTRIBUTES:
                walk.seek(text, Place(module.path, child.lineno))
            case ast.Constant(value=str() as text) if id(child) not in docs and PROSE.search(text):
                # `frame.query("x > @LIMIT")` and `duckdb.sql("FROM rates")` read what the text names
                for word in sorted({*WORD.findall(text)} & {*module.defined, *module.imports, *local}):
                    _count_chain(walk, module, local, [word], child.lineno)


def _note_seeking(walk: _Walk, place: Place, *names: str) -> None:
    for name in names:
        if name in SEEKING or name in SEEKING_ATTRIBUTES:
            walk.seek(name, place)


def _count_chain(walk: _Walk, module: Module, local: Mapping[str, list[Import]], chain: list[str], line: int) -> None:
    """Count `a.b.c`: the name `a` here, and if that is a module of the project, its attribute."""
    first, *attributes = chain
    _note_seeking(walk, Place(module.path, line), first)
    _name(walk, module.name, first)
    for imported in (*module.imports.get(first, ()), *local.get(first, ())):
        whole = f"{imported.module}.{imported.name}" if imported.name else imported.module
        if whole in walk.modules or walk.modules.has_folder(whole):
            _take_attributes(walk, whole, attributes)
        _note_seeking(walk, Place(module.path, line), imported.module.split(".")[0], imported.name)


def _take_attributes(walk: _Walk, name: str, rest: list[str]) -> None:
    """Count what a chain of attributes reads of a module: a name of it, or of the module below that they lead to."""
    _run_module(walk, name)
    for index, attribute in enumerate(rest):
        if f"{name}.{attribute}" in walk.modules or walk.modules.has_folder(f"{name}.{attribute}"):
            if name in walk.modules and attribute in walk.modules[name].defined:
                _name(walk, name, attribute)
            name = f"{name}.{attribute}"
            _run_module(walk, name)
            continue
        if name in walk.modules:
            module = walk.modules[name]
            _name(walk, name, attribute)
            for imported in module.imports.get(attribute, ()):
                whole = f"{imported.module}.{imported.name}" if imported.name else imported.module
                if whole in walk.modules or walk.modules.has_folder(whole):
                    _take_attributes(walk, whole, rest[index + 1 :])
        return
    _count_module(walk, name)


def _record_call(walk: _Walk, module: Module, call: ast.Call) -> None:
    """Record the table that `context.table("a.b")` names, and count what a computed expression may read."""
    if not isinstance(call.func, ast.Attribute):
        return
    method, receiver = call.func.attr, chain_of(call.func.value)
    # `expression.sql("spark")` names a dialect: a word alone is no query
    is_word = bool(call.args) and isinstance(call.args[0], ast.Constant)
    is_sparks = method == "sql" and (not call.args or is_word or (receiver or [""])[-1].endswith("spark"))
    if (method in EVALUATED and not is_sparks) and not any(
        isinstance(argument, ast.Constant) and PROSE.search(str(argument.value)) for argument in call.args
    ):
        for name in (*module.defined, *module.imports):  # any of which a text that is not followed may name
            _count_chain(walk, module, {}, [name], call.lineno)
    table_argument = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "name"), None)
    table_argument = (
        _constant_value(module, table_argument.id) if isinstance(table_argument, ast.Name) else table_argument
    )
    text = (
        table_argument.value
        if isinstance(table_argument, ast.Constant) and isinstance(table_argument.value, str)
        else None
    )
    if method in CALLED and receiver and receiver[-1].lower().endswith(("context", "ctx")):
        if text is None:
            walk.unclear.append(Place(module.path, call.lineno))
        else:
            walk.tables.add(text.replace("`", "").replace('"', "").lower())
    elif method in QUERIED:
        inner = {
            id(part)
            for inner_call in ast.walk(call)
            if isinstance(inner_call, ast.Call) and inner_call is not call
            for part in ast.walk(inner_call)
        }  # another call's texts, `context.table("a.b")` above all, are its own
        for part in (part for argument in call.args for part in ast.walk(argument)):
            if id(part) not in inner and isinstance(part, ast.Constant) and isinstance(part.value, str):
                names = DOTTED.findall(part.value.lower().replace("`", ""))
                walk.queried += [(name, Place(module.path, part.lineno)) for name in names]


def _constant_value(module: Module, name: str) -> ast.expr | None:
    """Return the value of a module's name, if exactly one assignment binds it.

    If a function hides it by a name of its own, running the code refuses a table that was not named here.
    """
    match () if module.acts else module.defined.get(name, ()):
        case (ast.Assign(value=value),) if name not in module.imports:
            return value
        case (ast.AnnAssign(value=value),) if name not in module.imports:
            return value
    return None


@lru_cache(maxsize=4096)  # what many models share is looked at once; nodes are compared by identity
def _normal_text(node: Code) -> str:
    """Return the code as text without comments, formatting and docstrings."""
    return ast.dump(_Plain().visit(deepcopy(node)))  # a tree is read once and kept: it must not be changed


def _strip_decorators(node: ast.stmt, module: Module) -> ast.stmt:
    """Return the function without `@model(...)`, whose arguments are part of the model already."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node
    bare = type(node)(**{name: getattr(node, name) for name in node._fields})
    bare.decorator_list = [
        decorator for decorator in node.decorator_list if not says_only(decorator, module.imports, ("model",))
    ]
    return ast.copy_location(bare, node)


class _Plain(ast.NodeTransformer):
    """A transformer that removes docstrings."""

    def _without(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        body = getattr(node, "body", [])
        match body:
            case [ast.Expr(value=ast.Constant(value=str())), *rest]:
                node.body = rest  # type: ignore[attr-defined]  # each of these has a body
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Module = _without
