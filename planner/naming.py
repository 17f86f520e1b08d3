"""Names of columns, tables and views; each table has one, with three parts outside of the default catalog."""

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Self

PROD = "prod"
PHYSICAL = "mergeplan__"
HASHED = "mergeplan_md5__"
SESSION_CATALOG = "spark_catalog"  # which every Spark has


_PLAIN = re.compile(r"\d*+[^\W\d]\w*")  # a word, and no number
_BARE_FIELD = re.compile(r"`(?:[^`]|``)*`|([<,]\s*)(\w+)\s*:")
_FIELD_WORD = re.compile(r"(?!\d+(e\d+)?(l|s|y|f|d|bd)?$)\w+", re.ASCII | re.IGNORECASE)  # a word, and no number
_QUOTED_FIELD = re.compile(r"`((?:[^`]|``)*+)`(\s*:)?")
_WORDS = re.compile(r"[a-z_]\w*(?: [a-z_]\w*)+")  # nor of one: its keywords are in capitals
_HYPHENED = re.compile(r"\w[\w-]*")  # no text of an expression, which has spaces around a minus
_QUOTED = re.compile(r"`((?:[^`]|``)+)`")


class ColumnName(str):
    """A column's name in lower case, without quotes: Spark compares names without regard to case.

    A setting that takes expressions too (`unique_key`, `partitioned_by`) keeps a name as `key`, which `parse` reads
    back. So a name is never taken for an expression, nor an expression for a name.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        return super().__new__(cls, text.lower())

    @classmethod
    def parse(cls, sql: str) -> Self | None:
        """Return the name that a text of Spark SQL consists of, or None for any other expression.

        >>> ColumnName.parse("ID"), ColumnName.parse("`a-b`"), ColumnName.parse("a - b")
        ('id', 'a-b', None)
        """
        quoted = _QUOTED.fullmatch(sql)
        if quoted is None and not _PLAIN.fullmatch(sql):
            return None
        return cls(quoted[1].replace("``", "`") if quoted else sql)

    @property
    def key(self) -> str:
        """The name as it is written among expressions: in back-ticks unless it is a word."""
        return str(self) if _PLAIN.fullmatch(self) else quote_column(self)


def quote_column(name: str) -> str:
    """Return a column's name in back-ticks: whatever a project writes into a name stays one.

    >>> quote_column("a` or `b")
    '`a`` or ``b`'
    """
    return f"`{name.replace('`', '``')}`"


def key_sql(key: str) -> str:
    """Return a column or an expression of a key as Spark SQL, a column in back-ticks: it may be called `order`."""
    name = ColumnName.parse(key)
    return key if name is None else quote_column(name)


def partition_text(key: str) -> str:
    """Return a part of `partitioned_by` as fingerprints have it: earlier versions kept `a-b` without back-ticks.

    >>> partition_text("`a-b`"), partition_text("a - b"), partition_text("`a - b`")
    ('a-b', 'a - b', '`a - b`')
    """
    name = ColumnName.parse(key)
    return str(name) if name is not None and _HYPHENED.fullmatch(name) else key


def partition_column(key: str) -> str | None:
    """Return the column that a part of `partitioned_by` is, or None: earlier versions kept `a-b` without back-ticks.

    >>> partition_column("`a-b`"), partition_column("a-b"), partition_column("a - b"), partition_column("days(ts)")
    ('a-b', 'a-b', None, None)
    """
    name = ColumnName.parse(key)
    return key if name is None and (_HYPHENED.fullmatch(key) or _WORDS.fullmatch(key)) else name


def quote_name(name: str) -> str:
    return ".".join(map(quote_column, name.split(".")))


def quote_field(name: str) -> str:
    """Return the name of a struct's field as the text of a type has it: in back-ticks if Spark needs them."""
    return name if _FIELD_WORD.fullmatch(name) else quote_column(name)


def field_names(type_text: str) -> tuple[str, ...]:
    """Return the names of all fields in the text of a type, those of inner types too.

    >>> field_names("array<struct<id:int,`a, b`:struct<`c``d`:int>>>")
    ('id', 'a, b', 'c`d')
    """
    names = _QUOTED_FIELD.finditer(quote_fields(type_text))
    return tuple(match[1].replace("``", "`") for match in names if match[2])


def quote_fields(type_text: str) -> str:
    """Return a type with the words among its fields in back-ticks: without them our parser drops a field `select`.

    >>> quote_fields("struct<select:int,`a-b`:array<int>>")
    'struct<`select`:int,`a-b`:array<int>>'
    """
    return _BARE_FIELD.sub(lambda match: f"{match[1]}`{match[2]}`:" if match[2] else match[0], type_text)


@lru_cache(maxsize=65536)
def parts_of(name: str) -> tuple[str, str, str]:
    """Return the catalog ('' for the default one), schema and table of a name."""
    first, table = name.rsplit(".", 1)
    catalog, _, schema = first.rpartition(".")
    return catalog, schema, table


def qualify_table(catalog: str, schema: str, table: str) -> str:
    """Return the name of these parts; `catalog` is '' for the default one."""
    return f"{catalog}.{schema}.{table}" if catalog else f"{schema}.{table}"


class Suffix(StrEnum):
    """The part of a view's name that contains the environment."""

    SCHEMA = "schema"
    TABLE = "table"
    CATALOG = "catalog"


class Convention(StrEnum):
    """The content of a physical table's name besides its version."""

    SCHEMA_AND_TABLE = "schema_and_table"
    TABLE_ONLY = "table_only"
    HASH_MD5 = "hash_md5"


@dataclass(frozen=True)
class Naming:
    """The names of a project's tables and views; patterns are regular expressions from the start, the first match wins.

    `catalogs` are (pattern of an environment's name, catalog of its views), `schemas` (pattern of a model's schema,
    schema of its physical tables). `default` is the default catalog, '' for Spark's own.
    """

    suffix: Suffix = Suffix.SCHEMA
    catalogs: tuple[tuple[str, str], ...] = ()
    schemas: tuple[tuple[str, str], ...] = ()
    convention: Convention = Convention.SCHEMA_AND_TABLE
    default: str = ""

    def view(self, model: str, environment: str) -> str:
        """Return the name of a model's view, in the model's catalog or in the one of the environment.

        `shop.orders` is `shop.orders` in prod, and in dev `shop__dev.orders`, `shop.orders__dev` or
        `spark_catalog__dev.shop.orders`.
        """
        catalog, schema, table = parts_of(model)
        default_catalog = self.default or SESSION_CATALOG
        catalog = _first_match(self.catalogs, environment) or catalog
        if environment != PROD:
            match self.suffix:
                case Suffix.SCHEMA:
                    schema = f"{schema}__{environment}"
                case Suffix.TABLE:
                    table = f"{table}__{environment}"
                case Suffix.CATALOG:
                    catalog = f"{catalog or default_catalog}__{environment}"
        return qualify_table("" if catalog == default_catalog else catalog, schema, table)

    def table(self, model: str, version: str) -> str:
        """Return the name of a table, in the model's catalog.

        `shop.orders` at version `ab12` is `mergeplan__shop.shop__orders__ab12` by default.
        """
        catalog, schema, table = parts_of(model)
        physical = _first_match(self.schemas, schema) or f"{PHYSICAL}{schema}"
        full = f"{schema}__{table}__{version}"
        match self.convention:
            case Convention.TABLE_ONLY:
                full = f"{table}__{version}"
            case Convention.HASH_MD5:
                full = HASHED + hashlib.md5(f"{physical}.{full}".encode(), usedforsecurity=False).hexdigest()
        return qualify_table(catalog, physical, full)

    def placement(self, model: str) -> str:
        """Return what settings add to a table's name ('' by default), and to its version: a version is one table."""
        schema = _first_match(self.schemas, parts_of(model)[1])
        return f"{schema}/{self.convention}" if schema or self.convention is not Convention.SCHEMA_AND_TABLE else ""


DEFAULT = Naming()


def _first_match(patterns: tuple[tuple[str, str], ...], text: str) -> str:
    return next((name for pattern, name in patterns if re.match(pattern, text)), "")
