"""Columns that nothing needs: no model that is read from outside is made from them, and they decide no rows.

A wrong "unused" breaks a table of somebody's, so everything in doubt counts as a use.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache

from mergeplan.planner.catalog.catalog import WORD, CatalogColumn, CatalogModel, UnusedColumn
from mergeplan.planner.model.model import Audit, Model
from mergeplan.planner.project.lineage import ALL, ROWS, Node
from mergeplan.planner.semantics.parent import can_mean


def find_unused_columns(
    models: Mapping[str, CatalogModel], standalone: Iterable[Audit] = ()
) -> tuple[UnusedColumn, ...]:
    """Return the columns of models with readers that reach no end of the graph, exposure, row or setting.

    Tables of others are left out, and so is a model whose columns are not known.
    """
    texts: dict[str, list[str]] = {}
    for audit in standalone:
        for name in audit.depends_on:
            texts.setdefault(name, []).append(audit.text or audit.sql)
    used = _used_columns(models, texts)
    return tuple(
        UnusedColumn(model.name, column.name, model.declared, _readers_to_edit(models, model, column))
        for model in models.values()
        if not model.declared.kind.is_external
        for column in model.columns or ()
        if Node(model.name, column.name) not in used
    )


def _used_columns(models: Mapping[str, CatalogModel], texts: Mapping[str, Collection[str]]) -> set[Node]:
    made_from = {
        Node(model.name, column.name): column.made_from for model in models.values() for column in model.columns or ()
    }
    waiting = [node for model in models.values() for node in _needed_columns(model, texts.get(model.name, ()))]
    used = set(waiting)
    while waiting:
        for source in made_from.get(waiting.pop(), ()):
            if source not in used:
                used.add(source)
                waiting.append(source)
    return used


def _needed_columns(model: CatalogModel, more_texts: Collection[str]) -> Iterator[Node]:
    history = model.declared.history
    compares_all = history is not None and not history.updated_at and not history.columns
    is_whole = not model.readers or model.exposures or model.declared.reads_itself or compares_all
    texts = [text.lower() for text in (*_list_setting_texts(model.declared), *more_texts)]
    for column in model.columns or ():
        decides = any(reader.column in (ROWS, ALL) for reader in column.read_by)
        if is_whole or decides or any(can_mean(text, column.name) for text in texts):
            yield Node(model.name, column.name)


def _readers_to_edit(models: Mapping[str, CatalogModel], model: CatalogModel, column: CatalogColumn) -> tuple[str, ...]:
    by_lineage = {reader.model for reader in column.read_by}
    by_text = {reader for reader in model.readers if _can_name_column(models[reader].declared.sql, column.name)}
    return tuple(sorted(by_lineage | by_text))


def _can_name_column(sql: str, column: str) -> bool:
    return column in words_of(sql) if WORD.fullmatch(column) else can_mean(sql.lower(), column)


@lru_cache(maxsize=8192)
def words_of(sql: str) -> frozenset[str]:
    return frozenset(WORD.findall(sql.lower()))


def _list_setting_texts(model: Model) -> Iterator[str]:
    """Yield the texts of a model beside its query that may name its own columns."""
    key, storage = model.by_key, model.storage
    yield from (model.by_time.time_column, *model.metadata.grain, *storage.partitioned_by, *storage.clustered_by)
    yield from (*key.unique_key, key.when_matched, key.merge_filter)
    if model.history is not None:
        yield from (model.history.valid_from, model.history.valid_to, model.history.updated_at, *model.history.columns)
    for call in model.checks.audits:
        yield from (call.query, *(value for _, value in call.arguments))
    for statement in (*model.statements.around, *model.statements.on_virtual_update):
        yield from (statement.head, statement.query)
    for signal in model.schedule.signals:
        yield from (value for _, value in signal.arguments)
