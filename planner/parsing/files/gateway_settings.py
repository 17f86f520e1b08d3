"""The Spark settings of gateways: which of them change results, and which are not allowed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.files.schema import ConnectionConfig
from mergeplan.planner.parsing.sql.yaml_documents import Document
from mergeplan.planner.semantics.spark import spark_settings
from mergeplan.planner.semantics.spark.spark_settings import TIME_ZONE, UNREADABLE, Settings

DEFAULTS_FILE = "spark-defaults.conf"
_ZONE = re.compile(r"SET\s+(?:TIME\s+ZONE\s+|spark\.sql\.session\.timeZone\s*=\s*)(.*)", re.IGNORECASE | re.DOTALL)
# Dates of an interval that name no time zone, though they are in UTC: a session interprets them in its own.
_BARE = re.compile(r"@(?:start|end|execution)_(?:ts|dtntz)\b", re.IGNORECASE)


@dataclass(frozen=True)
class GatewaySettings:
    """The settings of a gateway's sessions, and the place of each."""

    name: str
    conf: Mapping[str, str]
    places: Mapping[str, Place]
    config: str = "config.yaml"  # the file of the configuration

    @cached_property
    def shaping(self) -> Settings:
        return spark_settings.result_settings(self.conf)

    def place(self, key: str) -> Place:
        return self.places.get(key, Place(self.config, 1))


def gateway_settings(
    name: str, connection: ConnectionConfig, document: Document, file: tuple[str, str] | None
) -> GatewaySettings:
    """Return the settings of a gateway: its `config` overrides its `spark-defaults.conf` (path and text).

    Raise ProjectError at the line of a setting under which Spark would parse queries differently.
    """
    conf: dict[str, str] = {}
    places: dict[str, Place] = {}
    if file is not None and not connection.remote:
        for key, (value, line) in spark_settings.parse_properties(file[1]).items():
            conf[key], places[key] = value, Place(file[0], line)
    for key, value in conf_of(connection).items():
        conf[key], places[key] = value, document.place(("gateways", name, "connection", "config", key))
    for key in spark_settings.unreadable_settings(conf):
        message = f"`{key}: {conf[key]}` is not supported: Spark would parse queries differently than mergeplan."
        hint = f"Remove it, or set `{key}: {UNREADABLE[key]}` in `config` of the gateway `{name}`."
        raise ProjectError(message, place=places[key], hint=hint)
    return GatewaySettings(name, conf, places, document.path)


def conf_of(connection: ConnectionConfig) -> dict[str, str]:
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in sorted(connection.config.items())
    }


def apply_gateway_settings(model: Model, gateway: GatewaySettings) -> Model:
    """Return the model with settings that change its results; raise ProjectError for UTC intervals in another zone."""
    if model.kind.is_external:
        return model
    settings = gateway.shaping
    heads = (statement.head for statement in model.statements.around)
    zones = ((match[0], match[1]) for head in heads if (match := _ZONE.fullmatch(head.strip())))
    zone = dict(settings).get(spark_settings.TIME_ZONE, "UTC")
    statement = next((text for text, name in zones if not spark_settings.is_utc(name.strip("'\"` "))), "")
    if (zone != "UTC" or statement) and (reason := _needs_utc(model)):
        where = f"`{TIME_ZONE}` of the gateway `{gateway.name}` is `{zone}` ({gateway.place(TIME_ZONE)})"
        hint = f"Remove `{TIME_ZONE}` there, or compute the model on a gateway with `UTC`."
        if statement:
            where = f"`{statement}` sets another time zone than UTC"
            hint = (
                "Remove it, and convert times in the query, for example with `from_utc_timestamp(ts, 'Europe/Berlin')`."
            )
        raise ProjectError(f"`{model.name}` {reason}, but {where}.", place=model.place, hint=hint)
    return replace(model, settings=settings) if settings else model


def _needs_utc(model: Model) -> str:
    if model.kind.is_incremental:
        return "is computed by intervals in UTC"
    statements = model.statements.around
    texts = (model.sql, *(text for statement in statements for text in (statement.head, statement.query)))
    first_match = next((match for text in texts if (match := _BARE.search(text))), None)
    if first_match:
        return f"reads `{first_match[0]}`, which is in UTC without a time zone (unlike `_dt` and `_tstz`)"
    return ""
