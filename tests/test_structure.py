"""The structure that CONTRIBUTING asks for is kept: `python -m tests.structure`."""

from __future__ import annotations

from dataclasses import fields

from mergeplan.planner.model.model import Model
from tests.structure import DBT, lone_helpers, outside_importers

MODEL_FIELDS = 30  # a setting belongs into a part: the class of its kind, or of what it describes
GITHUB, OF_DBT = 2, 7  # files outside that import of bot/github, and of dbt's reader
HELPERS = 525  # small private ones with one reader


def test_a_model_gets_no_more_fields() -> None:
    assert len(fields(Model)) <= MODEL_FIELDS


def test_no_more_files_know_of_github_and_of_dbt() -> None:
    assert len(outside_importers("bot.github")) <= GITHUB
    assert len(outside_importers(*DBT)) <= OF_DBT


def test_no_more_small_helpers_have_one_reader() -> None:
    assert len(lone_helpers()) <= HELPERS
