"""The names of tables and views: physical tables by version, views by environment, as config.yaml defines them."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum

PROD = "prod"
PHYSICAL = "mergeplan__"
HASHED = "mergeplan_md5__"


class Suffix(StrEnum):
    """Which part of a view's name contains the environment."""

    SCHEMA = "schema"
    TABLE = "table"


class Convention(StrEnum):
    """What a physical table's name contains besides its version."""

    SCHEMA_AND_TABLE = "schema_and_table"
    TABLE_ONLY = "table_only"
    HASH_MD5 = "hash_md5"


@dataclass(frozen=True)
class Naming:
    """How a project names tables and views; patterns are regular expressions that match from the start, the first wins.

    `catalogs` are (pattern of an environment's name, catalog of its views), `schemas` (pattern of a model's schema,
    schema of its physical tables).
    """

    suffix: Suffix = Suffix.SCHEMA
    catalogs: tuple[tuple[str, str], ...] = ()
    schemas: tuple[tuple[str, str], ...] = ()
    convention: Convention = Convention.SCHEMA_AND_TABLE

    def view(self, model: str, environment: str) -> str:
        """`shop.orders` is `shop.orders` in prod and `shop__dev.orders`, or `shop.orders__dev`, in dev; in a catalog
        where the environment has one."""
        schema, table = model.split(".")
        if environment != PROD and self.suffix is Suffix.SCHEMA:
            schema = f"{schema}__{environment}"
        elif environment != PROD:
            table = f"{table}__{environment}"
        catalog = _first(self.catalogs, environment)
        return f"{catalog}.{schema}.{table}" if catalog else f"{schema}.{table}"

    def table(self, model: str, version: str) -> str:
        """`shop.orders` at version `ab12` is `mergeplan__shop.shop__orders__ab12` by default."""
        schema, table = model.split(".")
        physical = _first(self.schemas, schema) or f"{PHYSICAL}{schema}"
        full = f"{schema}__{table}__{version}"
        match self.convention:
            case Convention.TABLE_ONLY:
                full = f"{table}__{version}"
            case Convention.HASH_MD5:
                full = HASHED + hashlib.md5(f"{physical}.{full}".encode(), usedforsecurity=False).hexdigest()
        return f"{physical}.{full}"

    def placement(self, model: str) -> str:
        """The part of a physical table's name that the project's settings determine; '' by default. It is part of the
        version, so that one version is one table."""
        schema = _first(self.schemas, model.split(".")[0])
        return f"{schema}/{self.convention}" if schema or self.convention is not Convention.SCHEMA_AND_TABLE else ""


DEFAULT = Naming()


def _first(patterns: tuple[tuple[str, str], ...], text: str) -> str:
    return next((name for pattern, name in patterns if re.match(pattern, text)), "")
