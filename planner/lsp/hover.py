"""The editor's text about a name under the mouse, as Markdown."""

from mergeplan.planner.lsp.names import NameKind
from mergeplan.planner.lsp.navigation import Target
from mergeplan.planner.lsp.project_view import ProjectView
from mergeplan.planner.lsp.remembered_state import ProdState
from mergeplan.planner.model.model import Model
from mergeplan.planner.project.lineage import How
from mergeplan.planner.wording import count_noun, first_names

MOST = 8  # names in one line


def hover_text(view: ProjectView, target: Target, state: ProdState | None) -> str | None:
    if target.kind is NameKind.TABLE:
        return _table_text(view, target.name, state)
    if target.kind is NameKind.CTE:
        return f"**{target.name}** · CTE of this query"
    if target.is_local:
        return f"**{target.name}** · column of a CTE or subquery of this query"
    return _column_text(view, target.owner.table, target.name)


def _table_text(view: ProjectView, name: str, state: ProdState | None) -> str | None:
    model = view.project.models.get(name)
    if model is None:
        return f"**{name}** · neither a model nor in external_models.yaml"
    tags, owner = ", ".join(model.metadata.tags), model.metadata.owner
    lines = [f"**{name}** · {model.kind}" + (f" · {owner}" if owner else "")]
    if model.metadata.description:
        lines.append(model.metadata.description)
    if not model.kind.is_external:
        lines.append(f"cron `{model.cron.text}`" + (f" · tags {tags}" if tags else ""))
        lines.append(_prod_text(name, state))
    readers = view.readers.get(name, ())
    if readers:
        lines.append(f"read by {first_names([f'`{reader}`' for reader in readers], MOST)}")
    return "\n\n".join([line for line in lines if line] + [_columns_table(view, model)])


def _columns_table(view: ProjectView, model: Model) -> str:
    columns = view.columns(model.name)
    if not columns:
        return ""
    types, described = view.types(model.name), dict(model.metadata.column_descriptions)
    rows = [
        f"| `{column}` | {types.get(column, '')} | {_format_cell(described.get(column, ''))} |"
        for column in columns[:40]
    ]
    remainder = [f"| … | | {count_noun(len(columns) - 40, 'column')} more |"] if len(columns) > 40 else []
    return "\n".join(["| column | type | |", "|---|---|---|", *rows, *remainder])


def _prod_text(name: str, state: ProdState | None) -> str:
    if state is None:
        return ""
    snapshot = state.base.snapshots.get(name)
    if snapshot is None:
        return "not in prod"
    timeline = state.loaded.timeline_of(snapshot)
    time_text = f" · holds {first_names([str(interval) for interval in timeline], 2)}" if timeline else ""
    return (
        f"in prod: version `{snapshot.version}`, table `{snapshot.table}`{time_text if snapshot.kind.is_stored else ''}"
    )


def _column_text(view: ProjectView, table: str, column: str) -> str | None:
    model = view.project.models.get(table)
    if model is None:
        return f"**{table}.{column}**"
    kind = view.types(table).get(column, "")
    lines = [f"**{table}.{column}**" + (f" · `{kind}`" if kind else "")]
    if described := dict(model.metadata.column_descriptions).get(column):
        lines.append(described)
    edges = view.lineage[table].edges
    made = [
        f"`{edge.source.model}.{edge.source.column}`"
        for edge in edges
        if edge.how is How.MADE_FROM and edge.target.column == column and edge.source.column
    ]
    if made:
        lines.append(f"made from {first_names(made, MOST)}")
    elif reason := view.lineage[table].why_not:
        lines.append(f"not followed further: {reason}")
    readers = _column_readers(view, table, column)
    lines.append(f"read by {first_names(readers, MOST)}" if readers else "read by no model")
    return "\n\n".join(lines)


def _column_readers(view: ProjectView, table: str, column: str) -> list[str]:
    found_readers: list[str] = []
    for reader in view.readers.get(table, ()):
        for edge in view.lineage[reader].edges:
            if edge.source.model == table and edge.source.column in (column, "*"):
                name = f"`{reader}.{edge.target.column}`" if edge.target.column not in ("", "*") else f"`{reader}`"
                if name not in found_readers:
                    found_readers.append(name)
    return found_readers


def _format_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
