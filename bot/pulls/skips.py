"""A pull request with the label that skips planning: what is known of its head."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mergeplan.bot.context import Later
from mergeplan.bot.records import AFTER_MERGE, Pull, PullRecord, PullState
from mergeplan.bot.rules import BotConfig


def skip_changes(pull: Pull, record: PullRecord, config: BotConfig, label: str) -> dict[str, Any]:
    """The changes of the record: its head has no plan, and nobody may take the plan of an older one for it.

    Later when it was merged in this moment.
    """
    if record.state in AFTER_MERGE:
        raise Later(0.5, "it was merged this moment")
    unseen = {"run_lines": "", "planned_at": "", "shown_head": "", "shown_since": ""}
    over = {"reason": "", "progress": "", "fresh": False, "overrides": (), "attempts": 0}
    judged = replace(record.rules.decision, changes_at=0.0)  # no freeze that begins or ends changes what has no plan
    return {
        "state": PullState.SKIPPED,
        "skip_label": label,
        "head": pull.head,
        "base_ref": pull.base_ref,
        "author": pull.author,
        "forward_only": config.is_forward_only(pull.head_ref),
        **unseen,
        **over,
        "decision": judged,
    }
