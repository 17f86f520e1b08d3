"""Records as a test needs them: any field by name, without a transition of its own."""

from __future__ import annotations

from collections import Counter
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any

from mergeplan.bot.records import ProdRecord, PullRecord


def _pull_fields() -> dict[str, tuple[str, str]]:
    kinds: dict[str, object] = {entry.name: entry.default_factory for entry in fields(PullRecord)}
    parts = [(part, entry.name) for part, kind in kinds.items() if is_dataclass(kind) for entry in fields(kind)]
    times = Counter(name for _, name in parts)
    short = {name: (part, name) for part, name in parts if times[name] == 1}
    plain = {name: ("", name) for name, kind in kinds.items() if kind is MISSING}
    return {**short, **{f"{part}_{name}": (part, name) for part, name in parts}, **plain}


PULL_FIELDS = _pull_fields()


def change_record(record: PullRecord, **changes: Any) -> PullRecord:
    """Return the record with other values of some fields.

    A field of a part has its part's name before its own (`comment_id`), which may be left out where no other part has
    such a field (`progress`).
    """
    parts: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        part, field = PULL_FIELDS[name]
        parts.setdefault(part, {})[field] = value
    plain = parts.pop("", {})
    return replace(record, **plain, **{part: replace(getattr(record, part), **new) for part, new in parts.items()})


def change_prod(prod: ProdRecord, **changes: Any) -> ProdRecord:
    """Return prod's record with other values of some fields."""
    return replace(prod, **changes)
