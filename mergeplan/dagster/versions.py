"""Versions by which Dagster decides what is stale. It needs no Dagster.

The code version of a model is its fingerprint. Its data version changes with each write of its rows and with nothing
else: a batch that was found to hold its rows already, and a promotion that keeps the table, leave it as it was. What a
table was made from is recorded beside it, so that a model is stale when something that it reads was written since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mergeplan.planner.fingerprint import digest

CODE_VERSION = "dagster/code_version"
DATA_VERSION = "dagster/data_version"
IS_OURS = "dagster/data_version_is_user_provided"
INPUT_VERSION = "dagster/input_data_version"
INPUT_POINTER = "dagster/input_event_pointer"
UNSEEN, NO_EVENT = "INITIAL", "NULL"  # Dagster's words for a source without an event


@dataclass(frozen=True)
class Input:
    """The version of an asset that was read: its data version, and the id of its event; None for no event."""

    version: str = UNSEEN
    event: int | None = None


def table_data_version(table: str, partition: str | None, writer: str) -> str:
    """Return the data version of rows that `writer`, a run or a promotion, put into a table."""
    return digest("rows", table, partition or "", writer)[:32]


def view_version(fingerprint: str, inputs: Mapping[str, Input]) -> str:
    """Return the data version of a view, which changes with its query and with what that reads."""
    read = [part for name in sorted(inputs) for part in (name, inputs[name].version, str(inputs[name].event))]
    return digest("view", fingerprint, *read)[:32]


def provenance(code: str, data: str, inputs: Mapping[str, Input]) -> dict[str, str]:
    """Return the tags of a materialization that tell Dagster its inputs; `inputs` by asset key as text."""
    tags = {CODE_VERSION: code, DATA_VERSION: data, IS_OURS: "true"}
    for key, source in inputs.items():
        tags[f"{INPUT_VERSION}/{key}"] = source.version
        tags[f"{INPUT_POINTER}/{key}"] = NO_EVENT if source.event is None else str(source.event)
    return tags
