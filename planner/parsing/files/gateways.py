"""The gateways that a model may name: those that see the same tables as the project's own."""

from collections.abc import Mapping
from typing import Any

from mergeplan.planner.parsing.files.schema import Config, ConnectionConfig
from mergeplan.planner.parsing.sql.user_macros import Variable


def gateway_variables(config: Config) -> dict[str, dict[str, Variable]]:
    """Return the variables of each gateway by name in lower case; a gateway's own override the project's."""
    return {
        name: {key.lower(): _freeze_lists(value) for key, value in {**config.variables, **gateway.variables}.items()}
        for name, gateway in config.gateways.items()
    }


def gateways_apart(config: Config, own: str) -> Mapping[str, str]:
    """Return the gateways that models must not name while `own` is the project's, and why."""
    connection = config.gateways[own].connection
    reasons = {
        name: _separation_reason(gateway.connection, connection, own) for name, gateway in config.gateways.items()
    }
    for name, gateway in config.gateways.items():
        if gateway.model_defaults != config.gateways[own].model_defaults:
            reasons[name] = reasons[name] or f"it has other `model_defaults` than `{own}`"
    return {name: text for name, text in reasons.items() if text}


def apply_gateway_defaults(config: Config, own: str) -> Config:
    """Return the configuration with the defaults of the project's gateway, which override the project's own."""
    general, special = config.model_defaults, config.gateways[own].model_defaults
    if special is not None:
        changes = {key: getattr(special, key) for key in special.model_fields_set}
        config = config.model_copy(update={"model_defaults": general.model_copy(update=changes)})
    table_format, defaults = config.gateways[own].connection.table_format, config.model_defaults
    if table_format is None or defaults.table_format is not None:
        return config
    return config.model_copy(update={"model_defaults": defaults.model_copy(update={"table_format": table_format})})


def _separation_reason(other: ConnectionConfig, mine: ConnectionConfig, own: str) -> str:
    if other == mine:
        return ""
    if not (other.remote or mine.remote):
        return f"one process has one local Spark, and `{own}` uses it: set `remote` for one of the two"
    is_shared = other.shared_catalog is not None and other.shared_catalog == mine.shared_catalog
    if is_shared or (other.remote == mine.remote and other.catalog == mine.catalog):
        return ""
    return f"it may have other tables than `{own}`: if both see the same ones, give them the same `shared_catalog`"


def _freeze_lists(value: Any) -> Variable:
    if isinstance(value, list):
        return tuple(_freeze_lists(element) for element in value)
    return {str(key): _freeze_lists(element) for key, element in value.items()} if isinstance(value, dict) else value
