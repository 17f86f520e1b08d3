"""Fingerprints: a model as hashes of its data part, its metadata part, and its parents."""

import hashlib
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime

SCALARS = (str, int, datetime)
# Stored hashes contain these fields even at their defaults. The table never grows: a field that a class gets later is
# written only where it is set, so that hashes of values without it stay as they are.
ALWAYS_WRITTEN = {
    "AuditCall": "arguments blocking query",
    "Column": "comment",
    "Cron": "tz given_unit",
    "DbtVersions": "since scd_id updated is_deleted valid_to_current",
    "ForwardOnly": "every since preview destructive additive",
    "History": "valid_from valid_to type updated_at columns invalidates_deleted begins_when_seen",
    "Naming": "suffix catalogs schemas convention default",
    "SignalCall": "arguments",
    "Statement": "query makes harmless stages",
}


@dataclass(frozen=True)
class Fingerprint:
    """The hashes of a model: of what its rows come from, of its metadata, and of the fingerprints that it reads."""

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


def encode_text(value: object) -> str:
    """Return the text of a value in a hash that is stored; raise TypeError for a type that has none.

    >>> encode_text(("a", True)), encode_text(["b"])
    ("('a', True)", "['b']")
    """
    if value is None or isinstance(value, SCALARS):
        return repr(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(encode_text, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(encode_text, value))}]"
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"{type(value).__name__} has no text in hashes")
    always = ALWAYS_WRITTEN.get(type(value).__name__, "").split()
    pairs = ((field, getattr(value, field.name)) for field in fields(value) if field.repr)
    texts = (
        f"{field.name}={encode_text(item)}" for field, item in pairs if field.name in always or item != field.default
    )
    return f"{type(value).__name__}({', '.join(texts)})"
