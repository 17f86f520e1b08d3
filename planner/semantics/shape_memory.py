"""Shapes and digests of queries that were analysed before, found by all their inputs.

A key is a digest of the query's text, of the properties of its parents that it can mean (`parent`), and of the code
that reads it. The values are data, and one that cannot be read is computed again.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, cast

from mergeplan.planner.fingerprint import digest
from mergeplan.planner.serial import Json, decode_json, encode_json

T = TypeVar("T")


class Texts(Protocol):
    """Texts by key that outlive this process; a key that is unknown has none."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, text: str) -> None:
        """Store a text, at the latest when the plan is made."""


class NoTexts:
    """A store that keeps nothing beyond this process."""

    def get(self, key: str) -> str | None:
        return None

    def put(self, key: str, text: str) -> None:
        """Store nothing."""


@dataclass(frozen=True)
class ShapeMemory:
    """The results of earlier analyses; `version` is that of the analysing code."""

    texts: Texts = field(default_factory=NoTexts)
    version: str = ""
    _recalled: dict[tuple[type, str], object] = field(default_factory=dict, compare=False, repr=False)

    def recall(self, kind: type[T], key: str, decode: Callable[[str], T] | None = None) -> T | None:
        """Return the value that was remembered for a key, or None if there is none that can be read."""
        value = self._recalled.get((kind, key))
        if value is None and (text := self.texts.get(key)) is not None:
            with suppress(ValueError, TypeError, LookupError, AttributeError):
                value = self._recalled[kind, key] = decode(text) if decode else decode_json(kind, json.loads(text))
        return cast("T | None", value)

    def remember(self, key: str, value: object) -> None:
        data: Json = encode_json(value)
        self.texts.put(key, json.dumps(data, separators=(",", ":")))

    def key(self, *parts: str) -> str:
        """Return the key of a result that follows from these texts and from the code that reads them."""
        return digest("shape", self.version, *parts)


NO_MEMORY = ShapeMemory()
