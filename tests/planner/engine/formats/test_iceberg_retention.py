"""Which snapshots of an Iceberg table its last merge still needs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mergeplan.planner.engine.formats.iceberg import OURS, _last_merge, _oldest_needed

Snapshot = tuple[int, int | None, str | None, int]  # id, parent, what it says of itself, when it was made
BATCH = "batch 0123456789abcdef after {}"


@st.composite
def histories(draw: st.DrawFn) -> list[Snapshot]:
    """Snapshots one after another, some of them off the line, as a rollback leaves them."""
    snapshots: list[Snapshot] = []
    for id in range(1, draw(st.integers(1, 10)) + 1):
        parent = draw(st.integers(max(1, id - 2), id - 1)) if id > 1 else None
        mark = draw(st.sampled_from([None, OURS, BATCH.format(draw(st.integers(0, id - 1)))]))
        snapshots.append((id, parent, mark, id * 10))
    return snapshots


@given(histories(), st.integers(0, 120))
def test_the_last_merge_is_found_as_before_and_so_is_what_it_began_from(history: list[Snapshot], before: int) -> None:
    current = history[-1][0]
    last = _last_merge(current, history)

    kept_from = _oldest_needed(current, history, before)

    left = [snapshot for snapshot in history if snapshot[3] >= kept_from or snapshot[0] == current]
    assert kept_from <= before
    assert _last_merge(current, left) == last
    assert not last.batch_id or last.before in {0, *(snapshot[0] for snapshot in left)}
