"""The catalogs of a gateway, by its settings alone: Spark loads a catalog when a name first uses it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from mergeplan.planner.errors import CatalogUnknown, Located, ProjectError
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.table_format import FORMATS, TABLE_FORMATS
from mergeplan.planner.naming import PROD, SESSION_CATALOG, Naming, parts_of
from mergeplan.planner.parsing.files.gateway_settings import conf_of
from mergeplan.planner.parsing.files.schema import ConnectionConfig
from mergeplan.planner.semantics.spark.spark_settings import parse_properties

_CATALOG = re.compile(r"spark\.sql\.catalog\.([A-Za-z0-9_-]+)")
_FORMAT_OF_CLASS = {catalog: name for name, form in FORMATS.items() for catalog in form.catalogs}


@dataclass(frozen=True)
class Catalog:
    """The properties of a catalog: the format of its tables ('': unknown), and whether it can contain views."""

    table_format: str = ""
    has_views: bool = True


@dataclass(frozen=True)
class Catalogs:
    """The catalogs of a gateway by name, and the default one under its names in the project's files and in Spark.

    If these names differ, files know only the first: a table has one name.
    """

    gateway: str = ""
    default: str = SESSION_CATALOG
    in_spark: str = SESSION_CATALOG
    known: Mapping[str, Catalog] = field(default_factory=lambda: {SESSION_CATALOG: Catalog()})
    spelled: frozenset[str] = frozenset()  # with capitals: no name can refer to them

    def catalog_of(self, name: str) -> Catalog | None:
        """Return the catalog of the table or view of that name, or None if the gateway does not have it."""
        return self.known.get(parts_of(name)[0] or self.default)

    def is_session(self, name: str) -> bool:
        return (parts_of(name)[0] or self.in_spark) == SESSION_CATALOG

    def unknown(self, name: str, catalog: str, place: Located) -> ProjectError:
        hint = (
            f"In `gateways.{self.gateway}.connection` of config.yaml, set `default_catalog: {catalog}` if that is what "
            f"these files call the default catalog; or `catalogs: [{catalog}]` if the server has it; or add "
            f"`spark.sql.catalog.{catalog}` and its settings to `config`."
        )
        if catalog == self.in_spark:
            hint = f"`default_catalog` of `{self.gateway}` says that its name is `{self.default}` here: write that."
        if near := next((spelling for spelling in self.spelled if spelling.lower() == catalog), ""):
            hint = f"`{self.gateway}` has `{near}`, which is another catalog to Spark: rename it to `{catalog}`."
        return CatalogUnknown(name, catalog, self.gateway, place=place, hint=hint)


def catalogs_of(gateway: str, connection: ConnectionConfig, file: str = "") -> Catalogs:
    """Return the catalogs of a connection: of its `config`, of its `spark-defaults.conf` (text), and listed ones."""
    file_conf = {key: value for key, (value, _) in parse_properties(file).items()} if not connection.remote else {}
    conf = file_conf | conf_of(connection)
    in_spark = (connection.catalog or conf.get("spark.sql.defaultCatalog") or SESSION_CATALOG).lower()
    default = (connection.default_catalog or in_spark).lower()
    names = [match[1] for key in conf if (match := _CATALOG.fullmatch(key))]
    catalogs = {name.lower(): Catalog() for name in (SESSION_CATALOG, in_spark, *connection.catalogs)}
    catalogs |= {name: _read_catalog(name, conf) for name in names if name == name.lower() and name != SESSION_CATALOG}
    catalogs[default] = catalogs.pop(in_spark)
    spelled = frozenset(name for name in names if name != name.lower())
    return Catalogs(gateway, default, in_spark, catalogs, spelled)


def _read_catalog(name: str, conf: Mapping[str, str]) -> Catalog:
    key = f"spark.sql.catalog.{name}"
    table_format = _FORMAT_OF_CLASS.get(conf[key], "")
    kinds = (conf.get(f"{key}.type", "").lower(), conf.get(f"{key}.catalog-impl", ""))
    without_views = FORMATS[table_format].without_views if table_format else ()
    return Catalog(table_format, has_views=not any(kind in without_views for kind in kinds))


def apply_catalog(model: Model, catalogs: Catalogs, naming: Naming) -> Model:
    """Return the model with its catalog's format; raise ProjectError if its table or view in prod cannot be there."""
    if model.kind.is_external or not model.kind.has_view:
        return model
    name = parts_of(model.name)[0]

    def locate() -> Located:
        return model.locate(model.name, in_block=True)

    if (catalog := catalogs.catalog_of(model.name)) is None:
        raise catalogs.unknown(model.name, name, locate())
    check_views((naming.view(model.name, PROD), *([model.name] if model.kind.is_view else ())), catalogs, locate)
    if not model.kind.is_stored or catalogs.is_session(model.name):
        return model
    if not model.storage.table_format and catalog.table_format:
        return replace(model, storage=replace(model.storage, table_format=catalog.table_format))
    if name and model.storage.table_format not in TABLE_FORMATS:
        form_text = "of plain files" if model.storage.table_format else "without `table_format`"
        raise ProjectError(
            f"A table {form_text} cannot be in the catalog `{name}`: `{model.name}`.",
            place=locate(),
            hint=f"Set `table_format` to one of {', '.join(TABLE_FORMATS)}: that of the catalog's tables.",
        )
    return model


def check_views(views: Iterable[str], catalogs: Catalogs, locate: Callable[[], Located]) -> None:
    """Raise ProjectError if one of these views would be in a catalog that does not exist or cannot contain views."""
    for view in views:
        name = parts_of(view)[0] or catalogs.default
        catalog = catalogs.catalog_of(view)
        if catalog is None:
            raise catalogs.unknown(view, name, locate())
        if not catalog.has_views:
            form = FORMATS[catalog.table_format]
            reason = f"one of {form.title}'s of type {form.without_views[0]} holds no views"
            raise ProjectError(
                f"The view `{view}` cannot be in the catalog `{name}`: {reason}.",
                place=locate(),
                hint="Map environments to a catalog with views: `environment_catalog_mapping: {'.*': spark_catalog}`.",
            )


def check_reads(model: Model, catalogs: Catalogs) -> None:
    """Raise ProjectError at the line of a table in a catalog that the gateway does not have."""
    for name in model.depends_on:
        if catalogs.catalog_of(name) is None:
            raise catalogs.unknown(name, parts_of(name)[0], model.locate(name))
