"""Owners, tags and groups of models in the form that Dagster accepts. It needs no Dagster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

EMAIL = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+")
LONGEST = 63  # characters of a tag


def word(text: str) -> str:
    """Return the text with `_` for every character that no name in Dagster may have."""
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")


def owners(owner: str) -> tuple[str, ...]:
    """Return an owner as an e-mail address or as a team.

    >>> owners("ann@shop.org"), owners("Data Platform"), owners("")
    (('ann@shop.org',), ('team:Data_Platform',), ())
    """
    if EMAIL.fullmatch(owner.strip()):
        return (owner.strip(),)
    return (f"team:{word(owner)}",) if word(owner) else ()


def tags(texts: Iterable[str]) -> Mapping[str, str]:
    """Return tags as keys with values: `layer:raw` is the key `layer` with the value `raw`.

    >>> tags(["pii", "layer:raw"])
    {'pii': '', 'layer': 'raw'}
    """
    pairs = (re.split(r"[:=]", text, maxsplit=1) for text in texts)
    named = ((_label(pair[0]), _label(pair[1]) if len(pair) > 1 else "") for pair in pairs)
    return {key: value for key, value in named if key and not key.startswith("dagster")}


def _label(text: str) -> str:
    return re.sub(r"[^\w.-]+", "_", text, flags=re.ASCII).strip("_.-")[:LONGEST].strip("_.-")


def group(model: str) -> str:
    """Return the group of a model: its schema.

    >>> group("lake.shop.orders"), group("orders"), group("店.orders")
    ('shop', 'default', 'default')
    """
    parts = model.split(".")
    return (word(parts[-2]) if len(parts) > 1 else "") or "default"
