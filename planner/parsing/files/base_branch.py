"""The sections of a configuration that are taken from the base branch, and the variables closed to a pull request.

A variable that the base branch reads for its gateways only, such as a password, would be an ordinary text if a pull
request's `variables` read it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mergeplan.planner.parsing.files.configuration import END, START, Configuration, mark_variables
from mergeplan.planner.parsing.sql.yaml_documents import Document, Path

RULED = ("gateways", "default_gateway", "openlineage", "audits")
_STAND_IN = "1"  # a text, a number and true


def restrict_environment(
    source: Configuration, ruling: Configuration, environment: Mapping[str, str]
) -> Mapping[str, str]:
    """Return the environment that a configuration may read if another's `RULED` sections apply.

    Raise ProjectError at a line outside of these sections that reads a reserved variable. A variable is reserved if the
    other configuration reads it in them only, or mentions it in its code without reading it. If the configuration has
    `RULED` sections that differ, reserved variables have a stand-in as their value.
    """
    rules, config = mark_variables(ruling), mark_variables(source)
    closed = (_variable_names(rules, under_rules=True) | ruling.mentioned) - _variable_names(rules, under_rules=False)
    for at, name in _list_uses(config):
        if name in closed and at[0] not in RULED:
            message = f"The environment variable `{name}` is reserved for the gateways of the base branch."
            raise config.error(at, message, "Write the value itself, or use another variable.")
    if all(_find_section(config, name) == _find_section(rules, name) for name in RULED):
        return environment
    return {**environment, **dict.fromkeys(closed & environment.keys(), _STAND_IN)}


def _find_section(document: Document, name: str) -> Any:
    return document.value.get(name) if isinstance(document.value, dict) else None


def _variable_names(document: Document, *, under_rules: bool) -> frozenset[str]:
    return frozenset(name for at, name in _list_uses(document) if (at[0] in RULED) is under_rules)


def _list_uses(document: Document) -> Iterator[tuple[Path, str]]:
    if isinstance(document.value, dict):
        for key, value in document.value.items():
            yield from _walk_uses((str(key),), key)
            yield from _walk_uses((str(key),), value)


def _walk_uses(key_path: Path, value: Any) -> Iterator[tuple[Path, str]]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _walk_uses((*key_path, str(key)), key)
            yield from _walk_uses((*key_path, str(key)), child)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _walk_uses((*key_path, index), child)
    elif isinstance(value, str):
        for part in value.split(START)[1:]:
            yield key_path, part.partition(END)[0]
