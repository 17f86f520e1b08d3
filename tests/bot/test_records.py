"""A pull request's record and its parts."""

from __future__ import annotations

from dataclasses import fields

import pytest

from mergeplan.bot.records import PULL_FIELDS, PullRecord

RECORD = PullRecord("ann/shop", 7)


def test_changes_of_one_part_lose_nothing_of_each_other() -> None:
    """A progress report is written while another thread writes that the plan stands."""
    record = RECORD.change(progress="Computing.").change(run_id="r1", fresh=True)

    assert (record.run.progress, record.run.id, record.run.fresh) == ("Computing.", "r1", True)


def test_a_field_is_named_by_its_part_where_several_have_one_of_that_name() -> None:
    record = RECORD.change(shown_head="a", deploy_head="b", head="c")

    assert (record.shown.head, record.deploy.head, record.head) == ("a", "b", "c")


@pytest.mark.parametrize("name", ["lines", "by", "revision", "run", "environment", "unknown"])
def test_a_name_that_says_no_one_field_changes_nothing(name: str) -> None:
    with pytest.raises(KeyError):
        RECORD.change(**{name: ""})


def test_every_field_of_the_record_has_a_name() -> None:
    parts = {entry.name for entry in fields(PullRecord)} - PULL_FIELDS.keys()

    assert {part for part, _ in PULL_FIELDS.values()} == parts | {""}
    assert all(RECORD.change(**{name: RECORD.value(name)}) == RECORD for name in PULL_FIELDS)
