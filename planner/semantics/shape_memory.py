"""Shapes and digests of queries that were analysed before, found by all that they follow from.

A key is a digest of the query's text, of what the query can mean of its parents (`parent`), and of the code that reads
it. The values are data, and one that cannot be read is computed again.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from mergeplan.planner.fingerprint import digest
from mergeplan.planner.serial import Json, decode_json, encode_json

T = TypeVar("T")


class Texts(Protocol):
    """Texts by key that outlive this process; a key that is unknown has none."""

    def get(self, key: str) -> str | None:
        """The text of a key."""

    def put(self, key: str, text: str) -> None:
        """Keep a text, at the latest when the plan is made."""


class NoTexts:
    """Nothing is kept beyond this process."""

    def get(self, key: str) -> str | None:
        """None."""
        return None

    def put(self, key: str, text: str) -> None:
        """Keep nothing."""


@dataclass(frozen=True)
class ShapeMemory:
    """What was analysed before; `version` is that of the code that analyses."""

    texts: Texts = field(default_factory=NoTexts)
    version: str = ""

    def recall(self, kind: type[T], key: str) -> T | None:
        """The value that was remembered for a key; what cannot be read is as if it were not there."""
        text = self.texts.get(key)
        if text is not None:
            with suppress(ValueError, TypeError, KeyError, AttributeError):
                return decode_json(kind, json.loads(text))
        return None

    def remember(self, key: str, value: object) -> None:
        """Keep a value for a key."""
        data: Json = encode_json(value)
        self.texts.put(key, json.dumps(data, separators=(",", ":")))

    def key(self, *parts: str) -> str:
        """The key of what follows from these texts, and from the code that reads them."""
        return digest("shape", self.version, *parts)


NO_MEMORY = ShapeMemory()
