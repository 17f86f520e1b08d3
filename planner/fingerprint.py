"""Fingerprints: a model as hashes of its data part, its metadata part, and its parents."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Fingerprint:
    """The hashes of a model.

    `data`: what its rows come from. `metadata`: its description, owner, audits and the like. `parents`: the
    fingerprints that it reads.
    """

    data: str
    metadata: str
    parents: str

    @property
    def text(self) -> str:
        """One hash of all three: equal texts mean that nothing about the model changed."""
        return digest(self.data, self.metadata, self.parents)[:16]


def digest(*parts: str) -> str:
    """Return the SHA-256 (hex) of the parts, each with its length, so that no two lists of parts run together."""
    encoded = [part.encode() for part in parts]
    return hashlib.sha256(b"".join([len(data).to_bytes(8, "big") + data for data in encoded])).hexdigest()
