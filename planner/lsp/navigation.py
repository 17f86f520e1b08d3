"""The definition of a name, and all places with the same meaning: models, CTEs and columns, across files."""

from collections.abc import Iterator
from dataclasses import dataclass

from mergeplan.planner.lsp.names import Name, NameKind, Owner
from mergeplan.planner.lsp.project_view import FileView, ProjectView
from mergeplan.planner.lsp.texts import FileSpan, Lines, Span
from mergeplan.planner.parsing.sql.names import without_default

NOBODY = Owner()


@dataclass(frozen=True)
class Target:
    """The meaning of a name: a table, a column of a table, or an object of one file (a CTE, its column)."""

    kind: NameKind
    name: str
    owner: Owner = NOBODY
    path: str = ""  # of what only one file knows

    @property
    def is_local(self) -> bool:
        """True for an object that no other file can name."""
        return bool(self.path)


def target_at(
    view: ProjectView, path: str, text: str, offset: int, *, follow: bool = False
) -> tuple[Target, Span] | None:
    """Return the meaning of the name at an offset, and its span; None if there is no name or no clear meaning.

    A bare column of a CTE that is an output of the model is the model's column, or with `follow` the CTE's.
    """
    file = view.file(path, text)
    if (in_block := _block_target(view, file, offset)) is not None:
        return in_block
    name = file.names.find(offset)
    if name is None:
        return None
    if name.kind is NameKind.TABLE:
        return Target(NameKind.TABLE, name.name), name.span
    if name.kind is NameKind.CTE:
        return Target(NameKind.CTE, name.name, name.owners[0], path), name.span
    owner = _column_owner(name, follow=follow)
    if owner is None:
        return None
    return Target(NameKind.COLUMN, name.name, owner, "" if owner.table else path), name.span


def find_definitions(view: ProjectView, target: Target) -> tuple[FileSpan, ...]:
    """Return where a target is defined; for a column that a CTE only passes on, where it is passed on."""
    if target.kind is NameKind.TABLE:
        return _definition_of_model(view, target.name)
    if target.kind is NameKind.CTE:
        names = view.file(target.path).names.names
        return tuple(
            FileSpan(target.path, name.span)
            for name in names
            if name.kind is NameKind.CTE and name.is_definition and name.owners == (target.owner,)
        )
    path = target.path or _path_of(view, target.owner.table)
    if not path:
        return ()
    if not path.endswith(".sql"):
        return _definition_of_model(view, target.owner.table)
    names = view.file(path).names.names
    found_spans = tuple(
        FileSpan(path, name.span) for name in names if name.defines == target.owner and name.name == target.name
    )
    return found_spans or (() if target.is_local else _definition_of_model(view, target.owner.table))


def find_references(view: ProjectView, target: Target) -> Iterator[FileSpan]:
    """Yield every place that names the target, its definition included."""
    if target.kind is NameKind.TABLE:
        yield from _definition_of_model(view, target.name)
        for file in view.files_reading(target.name):
            for name in file.names.names:
                if name.kind is NameKind.TABLE and name.name == target.name:
                    yield FileSpan(file.path, name.span)
        return
    for file in _target_files(view, target):
        for name in file.names.names:
            if is_meant(name, target):
                yield FileSpan(file.path, name.span)


def is_meant(name: Name, target: Target) -> bool:
    """Return True for a name of the target, or for a column of several tables if one of them is the target's."""
    if name.kind is not target.kind or name.name != target.name:
        return False
    if target.kind is NameKind.CTE:
        return target.owner in name.owners
    return target.owner in name.owners or name.defines == target.owner


def _target_files(view: ProjectView, target: Target) -> Iterator[FileView]:
    if target.is_local:
        yield view.file(target.path)
        return
    path = _path_of(view, target.owner.table)
    if path.endswith(".sql"):
        yield view.file(path)
    yield from (file for file in view.files_reading(target.owner.table) if file.path != path)


def _column_owner(name: Name, *, follow: bool) -> Owner | None:
    """Return the owner of a column; for a bare column that is an output too, the owner that it is read from."""
    if name.implicit and name.defines and name.defines.table and not follow and not any(o.table for o in name.owners):
        return name.defines
    if len(name.owners) == 1:
        return name.owners[0]
    return name.defines if not name.owners else None


def _path_of(view: ProjectView, model: str) -> str:
    project_model = view.project.models.get(model)
    return project_model.path if project_model is not None else ""


def _definition_of_model(view: ProjectView, name: str) -> tuple[FileSpan, ...]:
    model = view.project.models.get(name)
    if model is None:
        return ()
    text = view.text(model.path)
    if text is None:
        return (FileSpan(model.path, Span(0, 0)),)
    if model.path.endswith(".sql") and (prop := view.file(model.path).file.property("name")) and prop.value:
        return (FileSpan(model.path, Span(prop.value[0].start, prop.value[-1].end + 1)),)
    return (FileSpan(model.path, Lines(text).word_at(model.line, 0)),)


def _block_target(view: ProjectView, file: FileView, offset: int) -> tuple[Target, Span] | None:
    prop = file.file.property("name")
    if prop is None or not prop.value:
        return None
    span = Span(prop.value[0].start, prop.value[-1].end + 1)
    if not span.holds(offset):
        return None
    name = without_default(file.file.text[span.start : span.end].lower(), view.project.catalogs.default)
    return (Target(NameKind.TABLE, name), span) if name in view.project.models else None
