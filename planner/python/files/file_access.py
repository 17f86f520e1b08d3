"""The places where code may open a file whose name it does not contain.

Code can open files only with what it names: a function that opens one, a `Path`, a package. Each such name is checked
where it occurs: it opens nothing, or it is called with a path whose end the code contains, or it may open any file.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from mergeplan.planner.errors import Place
from mergeplan.planner.python.files.code_names import BUILTINS, Code, Names, OtherName, OwnName, chain_of
from mergeplan.planner.python.files.known_packages import OPENERS, PATHS, SAME_PATH, opens_no_file
from mergeplan.planner.python.files.path_names import LISTING, TO_PATH, Ends, PathNames
from mergeplan.planner.python.modules import Module
from mergeplan.planner.python.project_modules import ProjectModules

# Attributes of a `Path` that read no file.
_TEXT_OF_PATH = frozenset(
    """name stem suffix suffixes parts root drive anchor as_posix as_uri is_absolute is_relative_to match mkdir
    write_text write_bytes unlink rmdir touch""".split()
)
_READ_OF_PATH = frozenset("read_text read_bytes open exists is_file is_dir stat lstat".split())
# Methods that open files, of objects whose type the code does not show.
_OPENING = frozenset(
    """read_text read_bytes iterdir rglob glob scandir listdir fwalk system popen is_file is_dir stat lstat extractall
    from_custom_template textFile wholeTextFiles binaryFiles""".split()
)
_OF_A_READER = frozenset("csv json parquet orc text load xml".split())  # of Spark
_NO_FILES = ("read_sql", "read_gbq", "read_clipboard")
_LOGGING = frozenset("debug info warning error exception critical log print".split())
_HARMLESS_CALLS = frozenset("print repr len isinstance hash id type bool str".split())
_LONGEST = 60


@dataclass(frozen=True)
class FileAccess:
    """Code that may open a file whose name it does not contain."""

    text: str
    place: Place

    def __str__(self) -> str:
        return f"`{self.text}` at {self.place}"


@dataclass
class Accesses:
    """The file accesses of a piece of code: whether it opens any, how their names end, and what may open any file."""

    opens: bool = False
    ends: set[str] = field(default_factory=set)
    unknown: list[FileAccess] = field(default_factory=list)


def file_accesses(node: Code, module: Module, modules: ProjectModules) -> Accesses:
    """Return the file accesses of a piece of code of a module; functions of a module are separate pieces."""
    accesses = Accesses()
    for piece in node.body if isinstance(node, ast.Module) else [node]:
        if piece is node or piece not in module.defined.get(getattr(piece, "name", ""), ()):
            _Piece(piece, module, modules, accesses).look()
    return accesses


@dataclass(frozen=True)
class _Piece:
    node: ast.stmt
    module: Module
    modules: ProjectModules
    accesses: Accesses

    @cached_property
    def names(self) -> Names:
        return Names(self.node, self.module, self.modules)

    @cached_property
    def paths(self) -> PathNames:
        return PathNames(self.names)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.node) for child in ast.iter_child_nodes(node)}

    def look(self) -> None:
        for part in _walk_evaluated(self.node):
            match part:
                case ast.Name() | ast.Attribute():
                    self._check_name(part)
                case ast.Call():
                    self._check_call(part)
                case ast.Global(names=names) if not self.names.imports.keys().isdisjoint(names):
                    self._record_unknown(part)
                case ast.ImportFrom(names=names, module=source) if any(name.name == "*" for name in names):
                    if not self.modules.is_own(source or "") and not part.level and not opens_no_file(f"{source}.x"):
                        self._record_unknown(part)

    def _record_unknown(self, node: ast.AST) -> None:
        text = " ".join(ast.unparse(node).split())
        text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
        place = Place(self.module.path, getattr(node, "lineno", self.node.lineno))
        self.accesses.opens = True
        self.accesses.unknown.append(FileAccess(text, place))

    def _record_open(self, ends: Ends | None, node: ast.AST) -> None:
        if ends is None:
            self._record_unknown(node)
        else:
            self.accesses.opens = self.accesses.opens or bool(ends)
            self.accesses.ends |= ends

    def _check_name(self, node: ast.Name | ast.Attribute) -> None:
        above = self.parents.get(node)
        chain = chain_of(node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if self.paths.is_path(node):
                self._check_path(node)
            elif not self._is_known(node.id):
                self._record_unknown(node)
        if not chain or (isinstance(above, ast.Attribute) and above.value is node):
            return
        for meaning in self.names.meanings(chain):
            if isinstance(meaning, OtherName):
                self._check_other_name(node, meaning.dotted)
            else:
                self._check_own_name(node, meaning)

    def _is_known(self, name: str) -> bool:
        return name in BUILTINS or self.names.is_bound(name) or bool(list(self.names.meanings([name])))

    def _check_other_name(self, node: ast.Name | ast.Attribute, dotted_name: str) -> None:
        call = self.parents.get(node)
        called = call if isinstance(call, ast.Call) and call.func is node else None
        if any(dotted_name == path or dotted_name.startswith(f"{path}.") for path in PATHS):
            if called is not None and (dotted_name in PATHS or dotted_name.endswith((".cwd", ".home"))):
                self._check_path(called)
            elif not (dotted_name in PATHS and self._is_type(node)):
                self._record_unknown(called or node)
        elif dotted_name in OPENERS:
            self._check_opener(node, dotted_name, called)
        elif not opens_no_file(dotted_name) and dotted_name not in SAME_PATH:
            self._record_unknown(called or node)

    def _is_type(self, node: ast.AST) -> bool:
        """Return True for the class in `isinstance(x, Path)` and in `case Path()`."""
        above = self.parents.get(node)
        if isinstance(above, ast.Tuple):
            above = self.parents.get(above)
        if isinstance(above, ast.Call):
            return isinstance(above.func, ast.Name) and above.func.id == "isinstance" and above.args[0] is not node
        return isinstance(above, ast.MatchClass)

    def _check_opener(self, node: ast.AST, dotted_name: str, call: ast.Call | None) -> None:
        opener = OPENERS[dotted_name]
        if call is None or any(word.arg is None or word.arg in opener.refuses for word in call.keywords):
            self._record_unknown(call or node)
            return
        named = [word.value for word in call.keywords if word.arg in opener.keywords]
        path = (*call.args[:1], *named)[:1]
        starred = any(isinstance(argument, ast.Starred) for argument in call.args)
        self._record_open(None if starred or not path else self.paths.ends(path[0]), call)

    def _check_own_name(self, node: ast.Name | ast.Attribute, meaning: OwnName) -> None:
        """Check a name of the project: a module as a value leads to everything in it."""
        stored = isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) and not meaning.rest
        if stored or not meaning.name:
            self._record_unknown(node)
            return
        module_node: ast.expr = node
        for _ in meaning.rest:
            assert isinstance(module_node, ast.Attribute)
            module_node = module_node.value
        if isinstance(module_node, ast.Attribute) and self.paths.is_path(module_node):
            self._check_path(module_node)

    def _check_path(self, node: ast.AST) -> None:
        above = self.parents.get(node)
        match above:
            case ast.Attribute(attr=attr):
                self._path_attribute(above, attr)
            case ast.BinOp(op=ast.Div()) | ast.IfExp() | ast.BoolOp() | ast.NamedExpr():
                self._check_path(above)
            case ast.Subscript(value=ast.Attribute(attr="parents")):
                self._check_path(above)
            case ast.FormattedValue() | ast.Compare() | ast.Expr() | ast.UnaryOp():
                pass
            case ast.Assign() | ast.AnnAssign() if self._is_followed(above):
                pass
            case ast.If(test=test) | ast.Assert(test=test) if test is node:
                pass
            case ast.Call():
                self._path_argument(above, above)
            case ast.keyword():
                call = self.parents.get(above)
                assert isinstance(call, ast.Call | ast.ClassDef)
                self._path_argument(call, above)
            case _:
                self._record_unknown(node)

    def _is_followed(self, statement: ast.Assign | ast.AnnAssign) -> bool:
        """Return True if the assignment binds only names, each use of which is checked."""
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        above = self.parents.get(statement)
        inside = isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef) or statement is self.node
        plain = all(isinstance(target, ast.Name) for target in targets) and inside
        shared = {name for part in ast.walk(self.node) if isinstance(part, ast.Global) for name in part.names}
        named = {target.id for target in targets if isinstance(target, ast.Name)}
        return plain and not isinstance(above, ast.ClassDef) and named.isdisjoint(shared)

    def _path_attribute(self, node: ast.Attribute, attr: str) -> None:
        above = self.parents.get(node)
        call = above if isinstance(above, ast.Call) and above.func is node else None
        if attr in ("parent", "parents") or (attr in TO_PATH and attr not in _TEXT_OF_PATH and call):
            self._check_path(call or node)
        elif attr in _READ_OF_PATH and call:
            self._record_open(self.paths.ends(node.value), call)
        elif attr in LISTING and call and self._is_iterated(call):
            self._record_open(self.paths.listing_ends(call), call)
        elif attr not in _TEXT_OF_PATH:
            self._record_unknown(call or node)

    def _is_iterated(self, call: ast.Call) -> bool:
        """Return True if a loop with one variable takes the paths, each use of which is checked."""
        node: ast.AST = call
        above = self.parents.get(node)
        while isinstance(above, ast.Call) and isinstance(above.func, ast.Name) and above.func.id in ("sorted", "list"):
            if above.keywords or len(above.args) != 1:
                return False
            node, above = above, self.parents.get(above)
        looped = isinstance(above, ast.For | ast.comprehension) and above.iter is node
        return looped and isinstance(above, ast.For | ast.comprehension) and isinstance(above.target, ast.Name)

    def _path_argument(self, call: ast.Call | ast.ClassDef, node: ast.AST) -> None:
        if isinstance(call, ast.ClassDef):
            self._record_unknown(node)
            return
        match call.func:
            case ast.Attribute(attr=attr) if attr in _LOGGING:
                return
            case ast.Attribute(attr="joinpath" | "relative_to" | "is_relative_to"):
                return
            case ast.Name(id=name) if name in _HARMLESS_CALLS and not self.names.is_bound(name):
                return
        chain = chain_of(call.func)
        dotted_names = (
            [meaning.dotted for meaning in self.names.meanings(chain) if isinstance(meaning, OtherName)]
            if chain
            else []
        )
        read = all(name in OPENERS or name in PATHS or name in SAME_PATH or "os.path." in name for name in dotted_names)
        if not dotted_names or not read:
            self._record_unknown(call)

    def _check_call(self, call: ast.Call) -> None:
        match call.func:
            case ast.Name(id="getattr") if len(call.args) > 1 and isinstance(call.args[1], ast.Constant):
                name = call.args[1].value
                if name in _OPENING or name in _READ_OF_PATH or str(name).startswith("read_"):
                    self._record_unknown(call)
            case ast.Attribute(value=receiver, attr=attr):
                chain = chain_of(call.func)
                meanings = list(self.names.meanings(chain)) if chain else []
                clear = any(isinstance(meaning, OtherName) or not meaning.rest for meaning in meanings)
                if not clear and not self.paths.is_path(receiver):
                    self._check_method(call, receiver, attr)

    def _check_method(self, call: ast.Call, receiver: ast.expr, attr: str) -> None:
        argument = next(iter(call.args), None) or next((word.value for word in call.keywords), None)
        if (
            attr in _OPENING
            or (attr in ("open", "exists") and argument is None)
            or (attr in ("query", "eval") and any("@" in text and "(" in text for text in _constant_texts(call)))
        ):
            self._record_unknown(call)
        elif (
            attr == "open"
            or (attr.startswith("read_") and not attr.startswith(_NO_FILES))
            or (attr in _OF_A_READER and "read" in _attribute_names(receiver))
        ):
            self._record_open(self.paths.ends(argument), call)


def _walk_evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of the code that run; an annotation counts if it calls something."""
    yield node
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST):
                continue
            if name in ("annotation", "returns") and not any(isinstance(part, ast.Call) for part in ast.walk(child)):
                continue
            yield from _walk_evaluated(child)


def _constant_texts(node: ast.AST) -> list[str]:
    return [part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def _attribute_names(node: ast.AST) -> list[str]:
    names = []
    while isinstance(node, ast.Attribute | ast.Call):
        if isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        else:
            node = node.func
    return names
