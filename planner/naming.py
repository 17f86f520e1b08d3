"""The names of tables and views: physical tables by version, views by environment, as config.yaml defines them.

A name has two parts in the default catalog, and three in any other: `lake.shop.orders`. So each table has one name.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

PROD = "prod"
PHYSICAL = "mergeplan__"
HASHED = "mergeplan_md5__"
SESSION_CATALOG = "spark_catalog"  # which every Spark has


def quote_column(name: str) -> str:
    """A column's name in backquotes: whatever a project writes into a name stays one.

    >>> quote_column("a` or `b")
    '`a`` or ``b`'
    """
    return f"`{name.replace('`', '``')}`"


@lru_cache(maxsize=65536)
def parts_of(name: str) -> tuple[str, str, str]:
    """Catalog ('' for the default one), schema and table of a name."""
    first, table = name.rsplit(".", 1)
    catalog, _, schema = first.rpartition(".")
    return catalog, schema, table


def qualify_table(catalog: str, schema: str, table: str) -> str:
    """A name of its parts; `catalog` is '' for the default one."""
    return f"{catalog}.{schema}.{table}" if catalog else f"{schema}.{table}"


class Suffix(StrEnum):
    """Which part of a view's name contains the environment."""

    SCHEMA = "schema"
    TABLE = "table"
    CATALOG = "catalog"


class Convention(StrEnum):
    """What a physical table's name contains besides its version."""

    SCHEMA_AND_TABLE = "schema_and_table"
    TABLE_ONLY = "table_only"
    HASH_MD5 = "hash_md5"


@dataclass(frozen=True)
class Naming:
    """How a project names tables and views; patterns are regular expressions that match from the start, the first wins.

    `catalogs` are (pattern of an environment's name, catalog of its views), `schemas` (pattern of a model's schema,
    schema of its physical tables). `default` is the default catalog, '' for Spark's own.
    """

    suffix: Suffix = Suffix.SCHEMA
    catalogs: tuple[tuple[str, str], ...] = ()
    schemas: tuple[tuple[str, str], ...] = ()
    convention: Convention = Convention.SCHEMA_AND_TABLE
    default: str = ""

    def view(self, model: str, environment: str) -> str:
        """`shop.orders` is `shop.orders` in prod, and in dev `shop__dev.orders`, `shop.orders__dev` or
        `spark_catalog__dev.shop.orders`; in the model's catalog, or in that of the environment if it has one."""
        catalog, schema, table = parts_of(model)
        own = self.default or SESSION_CATALOG
        catalog = _first(self.catalogs, environment) or catalog
        if environment != PROD:
            match self.suffix:
                case Suffix.SCHEMA:
                    schema = f"{schema}__{environment}"
                case Suffix.TABLE:
                    table = f"{table}__{environment}"
                case Suffix.CATALOG:
                    catalog = f"{catalog or own}__{environment}"
        return qualify_table("" if catalog == own else catalog, schema, table)

    def table(self, model: str, version: str) -> str:
        """`shop.orders` at version `ab12` is `mergeplan__shop.shop__orders__ab12` by default; in its catalog."""
        catalog, schema, table = parts_of(model)
        physical = _first(self.schemas, schema) or f"{PHYSICAL}{schema}"
        full = f"{schema}__{table}__{version}"
        match self.convention:
            case Convention.TABLE_ONLY:
                full = f"{table}__{version}"
            case Convention.HASH_MD5:
                full = HASHED + hashlib.md5(f"{physical}.{full}".encode(), usedforsecurity=False).hexdigest()
        return qualify_table(catalog, physical, full)

    def placement(self, model: str) -> str:
        """The part of a physical table's name that the project's settings determine; '' by default. It is part of the
        version, so that one version is one table."""
        schema = _first(self.schemas, parts_of(model)[1])
        return f"{schema}/{self.convention}" if schema or self.convention is not Convention.SCHEMA_AND_TABLE else ""


DEFAULT = Naming()


def _first(patterns: tuple[tuple[str, str], ...], text: str) -> str:
    return next((name for pattern, name in patterns if re.match(pattern, text)), "")
