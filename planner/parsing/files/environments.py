"""Settings of environments: how long they and their tables are kept, and the names of tables and views."""

import re
from collections.abc import Mapping
from datetime import timedelta

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.naming import PROD, SESSION_CATALOG, Convention, Naming, Suffix
from mergeplan.planner.parsing.files.schema import Config
from mergeplan.planner.parsing.sql.dates import FIXED_UNITS
from mergeplan.planner.parsing.sql.yaml_documents import Document

_TTL = re.compile(r"(?:in\s+)?(\d+)\s+(minute|hour|day|week|month|year)s?")
_UNITS = {**FIXED_UNITS, "month": timedelta(days=30), "year": timedelta(days=365)}
_NAME = re.compile(r"[A-Za-z0-9_]+")
_LONGEST = timedelta(days=36_500)
SHORTEST_TABLE_HISTORY = timedelta(days=7)  # Delta's own default, below which it calls a VACUUM unsafe


def parse_ttl(text: str) -> timedelta:
    """Return `in 1 week` as a duration: a month has 30 days, a year 365. Raise ValueError for any other text."""
    match = _TTL.fullmatch(" ".join(text.lower().split()))
    length = None if match is None or len(match[1]) > 6 else int(match[1]) * _UNITS[match[2]]
    if length is None or length > _LONGEST:
        raise ValueError(f"`{text}` is not a duration. Write it like `in 1 week` or `in 3 days`.")
    return length


def environment_ttl(config: Config, environment: str) -> timedelta | None:
    """Return how long an environment is kept after a plan was applied to it; None: until it is dropped by hand."""
    pinned = {name.lower() for name in config.pinned_environments}
    if environment == PROD or environment in pinned or config.environment_ttl is None:
        return None
    return parse_ttl(config.environment_ttl)


def seconds_of_promotion(config: Config, environment: str) -> float | None:
    """Return how many seconds an atomic promotion waits for readers, or None if views move one by one."""
    return config.promotion.wait_seconds if config.promotion.atomic and environment == PROD else None


def replaces_views(config: Config, environment: str) -> bool:
    """Return True if foreign views of these names are replaced: only in prod, as pull requests may configure others."""
    return config.promotion.replaces_views and environment == PROD


def naming_of(config: Config, default: str = SESSION_CATALOG) -> Naming:
    """Return the names of tables and views with this default catalog, for a checked configuration."""
    return Naming(
        suffix=Suffix(config.environment_suffix_target),
        catalogs=tuple((pattern, name.lower()) for pattern, name in config.environment_catalog_mapping.items()),
        schemas=tuple((pattern, name.lower()) for pattern, name in config.physical_schema_mapping.items()),
        convention=Convention(config.physical_table_naming_convention),
        default="" if default == SESSION_CATALOG else default,
    )


def check_environments(config: Config, document: Document) -> None:
    """Raise ProjectError at the line of a duration, a pattern or a name that cannot be used."""
    for key in ("environment_ttl", "snapshot_ttl", "history_ttl", "table_history_ttl"):
        try:
            parse_ttl(getattr(config, key) or "in 1 day")
        except ValueError as error:
            raise document.error((key,), f"`{key}`: {error}") from None
    if (duration := config.table_history_ttl) and parse_ttl(duration) < SHORTEST_TABLE_HISTORY:
        message = f"`table_history_ttl`: `{duration}` is too short."
        hint = "Keep at least `in 7 days`: who began to read a table before it was written reads files of that time."
        raise document.error(("table_history_ttl",), message, hint)
    if config.environment_suffix_target == "catalog" and config.environment_catalog_mapping:
        message = "`environment_suffix_target: catalog` does not go with `environment_catalog_mapping`."
        raise document.error(("environment_suffix_target",), message, "Each names the catalog of views: keep one.")
    if config.virtual_environment_mode != "full":
        message = f"The virtual environment mode `{config.virtual_environment_mode}` is not supported."
        raise document.error(("virtual_environment_mode",), message, "Use `full`: every environment consists of views.")
    _check_patterns(document, "physical_schema_mapping", config.physical_schema_mapping)
    _check_patterns(document, "environment_catalog_mapping", config.environment_catalog_mapping)
    if config.promotion.atomic:
        _check_atomic(config, document)


def _check_atomic(config: Config, document: Document) -> None:
    """Raise ProjectError if prod's views are outside Spark's catalog: another one finds views in its own way."""
    mapped = (name.lower() for pattern, name in config.environment_catalog_mapping.items() if re.match(pattern, PROD))
    catalogs = {next(mapped, SESSION_CATALOG)}
    for gateway in config.gateways.values():
        connection = gateway.connection
        usual = SESSION_CATALOG if connection.type == "spark" else "Unity Catalog"
        catalogs.add(connection.catalog or str(connection.config.get("spark.sql.defaultCatalog", usual)))
    if strays := sorted(catalogs - {SESSION_CATALOG}):
        hint = f"Remove it: in `{strays[0]}` views move one by one."
        message = f"`atomic: true` needs prod's views in the catalog `{SESSION_CATALOG}`, not in `{strays[0]}`."
        raise document.error(("promotion", "atomic"), message, hint)


def _check_patterns(document: Document, key: str, mapping: Mapping[str, str]) -> None:
    for pattern, name in mapping.items():
        error: ProjectError | None = None
        try:
            re.compile(pattern)
        except re.error as wrong:
            error = document.error((key, pattern), f"`{pattern}` is not a regular expression: {wrong}.")
        if not _NAME.fullmatch(name):
            error = document.error((key, pattern), f"`{name}` may hold only letters, digits and underscores.")
        if error:
            raise error
