"""Mutants of JSON: one place of a document is left out, or has a value of another form."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

Place = tuple[str | int, ...]
DEEP: Any = []
for _ in range(60):
    DEEP = [DEEP]
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 10**30, "", " ", "x", "a; b", "a`b", "a.b.c.d", "../../x", "/etc/passwd", "\x00",
    "\ud7ff\ue000", "'", "(", "{{ x }}", "{% x %}", "@x", "2026-13-45", "x" * 5_000, "(" * 2_000, [], {}, [None], [[]],
    [["x"]], [1, "x"], {"x": None}, {"": ""}, {"x": {"x": []}}, DEEP,
)  # fmt: skip


def mutants(document: Any, count: int, seed: int) -> Iterator[tuple[str, Any]]:
    """So many mutants, each with a description of what was done."""
    chance = random.Random(seed)  # noqa: S311 - nothing is to be kept secret
    places = [*_places(document)]
    for _ in range(count):
        mutant, done = copy.deepcopy(document), []
        for place in chance.sample(places, chance.choice((1, 1, 1, 2))):
            done.append(f"{place}: {_change(mutant, place, chance)}")
        yield "; ".join(done), mutant


def _places(value: Any, above: Place = ()) -> Iterator[Place]:
    """Every place below the document itself."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*above, key)
        yield from _places(item, (*above, key))


def _change(document: Any, place: Place, chance: random.Random) -> str:
    *above, last = place
    for key in above:
        try:
            document = document[key]
        except (KeyError, IndexError, TypeError):
            return "gone"
    is_there = isinstance(document, dict) or (
        isinstance(document, list) and isinstance(last, int) and last < len(document)
    )
    if not is_there:
        return "gone"
    how = chance.randrange(5)
    if how == 0 and isinstance(document, dict):
        document.pop(last, None)
        return "left out"
    value = copy.deepcopy(chance.choice(VALUES))
    if how == 1 and isinstance(document, dict):
        document["another"] = value
    document[last] = [document.get(last)] if how == 2 and isinstance(document, dict) else value
    return repr(value)[:80]
