"""What a gateway says of Spark's settings: which of them shape rows, and what may not be said."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from planner.errors import Place, ProjectError
from planner.model.model import Model
from planner.parsing.files.schema import ConnectionConfig
from planner.parsing.sql.yaml_documents import Document
from planner.semantics.spark_settings import TIME_ZONE, UNREADABLE, Settings, properties, shaping, unreadable, zone_of

DEFAULTS_FILE = "spark-defaults.conf"
# Dates of an interval that name no time zone, though they are in UTC: a session reads them in its own.
_BARE = re.compile(r"@(?:start|end|execution)_(?:ts|dtntz)\b", re.IGNORECASE)


@dataclass(frozen=True)
class GatewaySettings:
    """The settings of a gateway's sessions, and where each is written."""

    name: str
    conf: Mapping[str, str]
    places: Mapping[str, Place]

    @property
    def shaping(self) -> Settings:
        return shaping(self.conf)

    def place(self, key: str) -> Place:
        return self.places.get(key, Place("config.yaml", 1))


def gateway_settings(
    name: str, connection: ConnectionConfig, document: Document, file: tuple[str, str] | None
) -> GatewaySettings:
    """The settings of a gateway: those of its `spark-defaults.conf` (path and text), and over them those of `config`.

    ProjectError at the line of one under which Spark would read other queries than are written.
    """
    conf: dict[str, str] = {}
    places: dict[str, Place] = {}
    if file is not None and not connection.remote:
        for key, (value, line) in properties(file[1]).items():
            conf[key], places[key] = value, Place(file[0], line)
    for key, value in conf_of(connection).items():
        conf[key], places[key] = value, document.place(("gateways", name, "connection", "config", key))
    for key in unreadable(conf):
        said = f"With `{key}` at `{conf[key]}` Spark reads other queries than mergeplan does, so it cannot be so."
        hint = f"Leave it out, or say `{key}: {UNREADABLE[key]}` in `config` of the gateway `{name}`."
        raise ProjectError(said, place=places[key], hint=hint)
    return GatewaySettings(name, conf, places)


def conf_of(connection: ConnectionConfig) -> dict[str, str]:
    """The `config` of a connection as Spark takes it, sorted."""
    return {key: _text(value) for key, value in sorted(connection.config.items())}


def computed_under(model: Model, gateway: GatewaySettings) -> Model:
    """The model with the settings that shape its rows; ProjectError at a model that no session of another time zone
    than UTC can compute: its intervals are days, or hours, of UTC."""
    if model.kind.is_external:
        return model
    settings = gateway.shaping
    zone = zone_of(settings)
    if zone != "UTC" and (why := _needs_utc(model)):
        where = f"`{TIME_ZONE}` of the gateway `{gateway.name}` is `{zone}` ({gateway.place(TIME_ZONE)})"
        hint = f"Leave `{TIME_ZONE}` out there, or compute the model on a gateway that says `UTC`."
        raise ProjectError(f"`{model.name}` {why}, and {where}.", place=model.place, hint=hint)
    return replace(model, settings=settings) if settings else model


def _needs_utc(model: Model) -> str:
    if model.kind.is_incremental:
        return "is filled by intervals of UTC"
    statements = (*model.pre_statements, *model.post_statements)
    texts = (model.sql, *(text for each in statements for text in (each.head, each.query)))
    found = next((match for text in texts if (match := _BARE.search(text))), None)
    return f"reads `{found[0]}`, which is in UTC and does not say so (`_dt` and `_tstz` do)" if found else ""


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
