"""Edits that the editor offers: expand a star, declare an external table, audits for a grain, quick fixes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mergeplan.planner.lsp.diagnostics import Diagnostic
from mergeplan.planner.lsp.project_view import FileView, ProjectView
from mergeplan.planner.lsp.texts import Edit, Span
from mergeplan.planner.naming import ColumnName
from mergeplan.planner.parsing.sql.tokens import did_you_mean

EXTERNAL = "external_models.yaml"
KEYWORDS = 80  # characters of a list of columns in one line


@dataclass(frozen=True)
class Action:
    """An edit with its title; `fixes` is the message that it resolves."""

    title: str
    edits: tuple[Edit, ...]
    fixes: str = ""


def actions_at(
    view: ProjectView, path: str, text: str, span: Span, diagnostics: Sequence[Diagnostic]
) -> tuple[Action, ...]:
    file = view.file(path, text)
    own_diagnostics = [found_one for found_one in diagnostics if _is_overlapping(found_one.span, span)]
    return (
        *_expand_stars(file, span),
        *_grain_audits(file, span),
        *(action for diagnostic in own_diagnostics for action in _diagnostic_fixes(view, file, diagnostic)),
    )


def _expand_stars(file: FileView, span: Span) -> Iterator[Action]:
    for place, meant in file.names.stars:
        resolved_sources = [(alias, columns) for alias, _, columns in meant if columns is not None]
        if not _is_overlapping(place, span) or len(resolved_sources) < len(meant) or not resolved_sources:
            continue
        qualified = len(resolved_sources) > 1 or "." in file.file.text[place.start : place.end]
        names = [
            f"{alias}.{column}" if qualified else column for alias, columns in resolved_sources for column in columns
        ]
        if len({name.rpartition(".")[2] for name in names}) < len(names):
            continue  # two columns of one name, of which the reader would have to choose
        yield Action("Expand `*`", (Edit(file.path, place, _join_columns(file.file.text, place, names)),))


def _join_columns(text: str, place: Span, names: Sequence[str]) -> str:
    line = ", ".join(names)
    if len(line) <= KEYWORDS:
        return line
    begin = text.rfind("\n", 0, place.start) + 1
    indent = text[begin : place.start]
    space = indent if not indent.strip() else " " * (len(indent) - len(indent.lstrip()) + 2)
    return f",\n{space}".join(names)


def _grain_audits(file: FileView, span: Span) -> Iterator[Action]:
    block = file.file.block
    if block is None or not _is_overlapping(block, span) or len(file.models) != 1:
        return
    model = file.models[0]
    named, grain = {call.name for call in model.checks.audits}, model.metadata.grain
    missing = [name for name in ("unique_values", "not_null") if name not in named]
    if not grain or not missing or not model.kind.is_stored:
        return
    columns = ", ".join(ColumnName(name).key for name in grain)
    unique = f"unique_combination_of_columns(columns := ({columns}))"
    calls = [f"not_null(columns := ({columns}))"] if "not_null" in missing else []
    if len(grain) == 1 and "unique_values" in missing:
        calls.insert(0, f"unique_values(columns := ({columns}))")
    elif len(grain) > 1 and "unique_combination_of_columns" not in named:
        calls.insert(0, unique)
    edit = _add_audits(file, calls)
    if calls and edit is not None:
        yield Action("Add audits for the grain", (edit,))


def _add_audits(file: FileView, calls: Sequence[str]) -> Edit | None:
    block, prop = file.file.block, file.file.property("audits")
    if block is None:
        return None
    if prop is None:
        return _add_property(file, f"audits ({', '.join(calls)})")
    if not prop.value or file.file.text[prop.value[-1].start] != ")":
        return None
    at = prop.value[-1].start
    return Edit(file.path, Span(at, at), f", {', '.join(calls)}")


def _add_property(file: FileView, prop: str) -> Edit | None:
    if not file.file.properties:
        return None
    at = file.file.properties[-1].span.end
    lines = "\n" in file.file.text[file.file.block.start : file.file.block.end] if file.file.block else False
    return Edit(file.path, Span(at, at), f",\n  {prop}" if lines else f", {prop}")


def _diagnostic_fixes(view: ProjectView, file: FileView, diagnostic: Diagnostic) -> Iterator[Action]:
    match diagnostic.rule:
        case "nomissingexternalmodels" | "misspelledtable":
            yield from _table_fixes(view, file, diagnostic)
        case "nomissingowner":
            yield from _property_fix(file, "owner", "Add an owner", diagnostic)
        case "nomissingdescription":
            yield from _property_fix(file, "description", "Add a description", diagnostic)
        case "nomissingaudits":
            if edit := _add_property(file, "audits (not_null(columns := ()))"):
                yield Action("Add `audits`", (edit,), diagnostic.message)
    if diagnostic.rule:
        yield from _ignore_rule(file, diagnostic)


def _property_fix(file: FileView, key: str, title: str, diagnostic: Diagnostic) -> Iterator[Action]:
    if edit := _add_property(file, f"{key} ''"):
        yield Action(title, (edit,), diagnostic.message)


def _ignore_rule(file: FileView, diagnostic: Diagnostic) -> Iterator[Action]:
    prop = file.file.property("ignored_rules")
    title = f"Ignore the rule `{diagnostic.rule}` in this model"
    if prop is None and (edit := _add_property(file, f"ignored_rules ({diagnostic.rule})")):
        yield Action(title, (edit,), diagnostic.message)
    elif prop is not None and prop.value and file.file.text[prop.value[-1].start] == ")":
        at = prop.value[-1].start
        yield Action(title, (Edit(file.path, Span(at, at), f", {diagnostic.rule}"),), diagnostic.message)


def _table_fixes(view: ProjectView, file: FileView, diagnostic: Diagnostic) -> Iterator[Action]:
    name = next((name for name in file.names.names if name.span.holds(diagnostic.span.start)), None)
    if name is None:
        return
    near = did_you_mean(name.name, view.project.models, most=0).partition("`")[2].partition("`")[0]
    if near in view.project.models:
        yield Action(f"Change to `{near}`", (Edit(file.path, name.span, near),), diagnostic.message)
    external_text = view.texts.get(EXTERNAL)
    if external_text is None:
        target = view.project.root / EXTERNAL
        external_text = target.read_text("utf-8-sig") if target.is_file() else ""
    end = len(external_text)
    entry = ("" if not external_text or external_text.endswith("\n") else "\n") + f"- name: {name.name}\n"
    yield Action(f"Declare `{name.name}` in {EXTERNAL}", (Edit(EXTERNAL, Span(end, end), entry),), diagnostic.message)


def _is_overlapping(one: Span, other: Span) -> bool:
    return one.start <= other.end and other.start <= one.end
