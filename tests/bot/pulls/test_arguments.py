"""What the planner is asked for a pull request."""

from __future__ import annotations

from mergeplan.bot.pulls.arguments import EDITED_MOST, model_files, plan_arguments
from mergeplan.bot.records import PullRecord
from mergeplan.bot.rules import BotConfig
from tests.bot.changing import change_record


def test_the_models_that_a_pull_request_edits_must_open() -> None:
    changed = ["etl/models/a.sql", "etl/models/deep/b.py", "etl/seeds/c.csv", "models/other.sql", "etl/models/d.yaml"]

    edited = model_files(changed, "etl")

    assert edited == ("models/a.sql", "models/deep/b.py")
    record = change_record(PullRecord("o/r", 7), environment_name="pr_7")
    assert plan_arguments(record, BotConfig(), BotConfig().diff, edited)[-2:] == (
        "--must-open=models/a.sql",
        "--must-open=models/deep/b.py",
    )
    assert model_files([f"models/{n}.sql" for n in range(EDITED_MOST + 1)], ".") == ("*",)
