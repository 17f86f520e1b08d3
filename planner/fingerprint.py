"""A model as hashes: its data part, its metadata part, its parents."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Fingerprint:
    """`data`: what its rows come from; `metadata`: its description, owner, audits and the like; `parents`: the
    fingerprints it reads."""

    data: str
    metadata: str
    parents: str

    @property
    def text(self) -> str:
        """One hash of all three: equal texts mean that nothing about the model changed."""
        return digest(self.data, self.metadata, self.parents)[:16]


def digest(*parts: str) -> str:
    """SHA-256 (hex) over the parts, each length-prefixed so that no two lists of parts run together."""
    encoded = [part.encode() for part in parts]
    return hashlib.sha256(b"".join([len(data).to_bytes(8, "big") + data for data in encoded])).hexdigest()
