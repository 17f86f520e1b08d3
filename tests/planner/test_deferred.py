"""An object of which some fields are read later is, for who looks at it, the whole one."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from mergeplan.planner.deferred import defer, is_deferred
from mergeplan.planner.model.model import Column

WHOLE = Column("id", "int", "its key")


def test_the_other_fields_are_read_once_and_when_one_is_needed() -> None:
    reads: list[Column] = []
    deferred = defer(Column, {"name": "id"}, lambda: reads.append(WHOLE) or WHOLE)

    assert (deferred.name, isinstance(deferred, Column), is_deferred(deferred), reads) == ("id", True, True, [])
    assert (deferred.type, deferred.comment, type(deferred), is_deferred(deferred)) == ("int", "its key", Column, False)
    assert reads == [WHOLE]


def test_it_equals_and_hashes_and_prints_as_the_whole_one() -> None:
    one, two, three, four = (defer(Column, {"name": "id"}, lambda: WHOLE) for _ in range(4))

    assert (one == WHOLE, two == WHOLE, hash(three), repr(four)) == (True, True, hash(WHOLE), repr(WHOLE))
    assert defer(Column, {"name": "id"}, lambda: WHOLE) == defer(Column, {"name": "id"}, lambda: WHOLE)
    assert defer(Column, {"name": "id"}, lambda: WHOLE) != replace(WHOLE, comment="")


def test_a_copy_with_another_field_is_an_ordinary_object() -> None:
    copy = replace(defer(Column, {"name": "id"}, lambda: WHOLE), type="bigint")

    assert (copy, type(copy)) == (Column("id", "bigint", "its key"), Column)


def test_another_process_gets_the_whole_one() -> None:
    sent = pickle.dumps(defer(Column, {"name": "id"}, lambda: WHOLE))

    assert pickle.loads(sent) == WHOLE  # noqa: S301  # its own bytes


def test_a_failed_read_is_tried_again() -> None:
    answers = iter([ValueError("gone"), WHOLE])

    def read() -> Column:
        answer = next(answers)
        if isinstance(answer, ValueError):
            raise answer
        return answer

    deferred = defer(Column, {"name": "id"}, read)
    with pytest.raises(ValueError, match="gone"):
        _ = deferred.type

    assert deferred.type == "int"
