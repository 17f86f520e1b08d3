"""Each option of a verb is a field of the use case's options, so that it is written once."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import click
import pytest

from mergeplan.planner.cli.click_options import options_from
from mergeplan.planner.cli.handling import Handling
from mergeplan.planner.cli.main import VERBS, Verbs
from mergeplan.planner.session.options import (
    AuditOptions,
    DataDiffOptions,
    PlanOptions,
    RunOptions,
    TableDiffOptions,
    TestOptions,
)
from tests.planner.cli.test_unfinished import FINISH, OTHERS, TELL, WITHOUT_STATE

COMMON = {"root", "gateway", "output", "execution_time"}
OWN = {"plan": {"max_bytes", "max_seconds"}, "run": {"moved_code"},
       "table_diff": {"sides", "model", "show_sample", "limit", "schema_diff_ignore_case"},
       "test": {"verbose", "junit"}, "audit": {"environment", "history", "limit"},
       "data_diff": {"environment", "against"}}  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "kinds"),
    [
        ("plan", (PlanOptions, Handling, DataDiffOptions)),
        ("run", (RunOptions,)),
        ("audit", (AuditOptions,)),
        ("table_diff", (TableDiffOptions,)),
        ("data_diff", (DataDiffOptions,)),
        ("test", (TestOptions,)),
    ],
)
def test_each_option_is_a_field(verb: str, kinds: tuple[Any, ...]) -> None:
    command = Verbs(VERBS).get_command(click.Context(click.Command("mergeplan")), verb)
    known = {field.name for kind in kinds for field in fields(kind)}

    assert command is not None
    assert {param.name for param in command.params} - known - COMMON - OWN.get(verb, set()) == set()


def test_options_are_taken_by_name() -> None:
    assert options_from(TestOptions, {"names": ("a",), "verbose": True}) == TestOptions(("a",))


def test_every_verb_is_tried_beside_an_interrupted_promotion() -> None:
    assert {call[0] for call in (*FINISH.values(), *TELL.values())} | WITHOUT_STATE | OTHERS == VERBS.keys()
