"""The columns of a project's tables while its models are still being read: for macros such as `@STAR`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mergeplan.planner.model.model import Model
from mergeplan.planner.model.table_order import order_columns
from mergeplan.planner.parsing.sql.macro_scope import ColumnTypes
from mergeplan.planner.semantics.columns import model_shape
from mergeplan.planner.semantics.parent import Parent
from mergeplan.planner.semantics.types import UNKNOWN, certain_types


class NotRead(Exception):
    """Raised if the table's model may be in a file that is not read yet, so that the calling file must wait."""


@dataclass
class KnownColumns:
    """The columns of tables by the models read so far; `complete` if no more will be read."""

    models: Mapping[str, Model]
    complete: bool = False
    _found: dict[str, tuple[Model, ColumnTypes | None]] = field(default_factory=dict)
    _stated: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by table: columns that its query types

    def find_columns(self, table: str) -> ColumnTypes | None:
        """Return a table's columns with types ('' if unknown), or None; raise NotRead while its file may wait."""
        model = self.models.get(table)
        if model is None:
            if not self.complete:
                raise NotRead(table)
            return None
        column_types = self._list_columns(model, ())
        return column_types and {name: "" if kind in UNKNOWN else kind for name, kind in column_types.items()}

    def _list_columns(self, model: Model, above: tuple[str, ...]) -> ColumnTypes | None:
        entry = self._found.get(model.name)
        if entry is None or entry[0] is not model:
            types = self._infer_columns(model, above)
            if types:
                every = {**types, **{column.name: column.type for column in model.history_columns}}
                typed_columns = certain_types((name, type_) for name, type_ in every.items() if type_)
                types = {name: every[name] for name in order_columns(model, every, typed_columns)}
            entry = self._found[model.name] = (model, types)
        return entry[1]

    def _infer_columns(self, model: Model, above: tuple[str, ...]) -> ColumnTypes | None:
        if model.columns and (not model.kind.is_view or not model.sql):
            # the declared types of an external table may be wrong
            self._stated[model.name] = tuple(c.name for c in model.columns) if model.kind.is_seed else ()
            return {column.name: column.type for column in model.columns}
        if model.seed:
            return dict.fromkeys(model.seed.header, "")
        if not model.sql or model.name in above:
            return None
        parents = {name: self._create_parent(name, (*above, model.name)) for name in model.depends_on}
        shape = model_shape(model, parents)
        types = dict(shape.types)
        self._stated[model.name] = tuple(name for name, _ in shape.stated) if not model.columns else ()
        return {name: types.get(name, "") for name in shape.columns} if shape.columns else None

    def _create_parent(self, name: str, above: tuple[str, ...]) -> Parent:
        if name in above:
            return Parent(None)
        if name not in self.models and not self.complete:
            raise NotRead(name)
        column_types = self._list_columns(self.models[name], above) if name in self.models else None
        types = tuple((column, kind) for column, kind in (column_types or {}).items() if kind)
        stated = self._stated.get(name, ())
        return Parent(tuple(column_types) if column_types else None, types=types, stated=stated)
