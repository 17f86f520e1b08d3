"""The sentences of each rule; a reason with a sentence that nobody checks, or none of its rule, is false."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.planner.plan.reason_claims import Claim
from tests.planner.plan.reason_facts import FACTS

SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z`@])")
_BELOW = ("rows of parents", "added parents", "rows depend", "reads changed", "all count", "unknown reads", "keys",
          "kept rows", "star gains", "star loses", "names gain", "names lose", "other meaning")  # fmt: skip
# rule -> the sentences of which one at least must stand in its reason
OF_RULE: Mapping[str, tuple[str, ...]] = {
    "kind-changed": ("kind",),
    "seed-content": ("seed",),
    "settings-changed": ("settings", "seed", "spark settings"),
    "layout-changed": ("layout",),
    "metadata-only": ("metadata",),
    "same-query": ("same query", "same over parents"),
    "undecidable": ("python", "file of python", "unknown columns", "unknown reads"),
    "rows-changed": ("clauses", "select", "limited", "time column", "reads itself", "unfollowed", "obstacle", *_BELOW),
    "columns-reordered": ("order of columns",),
    "order-changed": ("own order",),
    "column-added": ("only adds", "edit"),
    "column-removed": ("verbs", "edit"),
    "column-altered": ("verbs", "edit", "same query", *_BELOW),
    "added": ("added",),
    "adopted": ("adopted",),
    "removed": ("removed",),
    "restated": ("restated", "restated above", "selected above"),
    "due": ("due", "again"),
    "later-form": ("later form",),
    "no-longer-ignored": ("no longer ignored",),
    "forward-only-model": ("forward-only kind",),
    "forward-only-plan": ("forward-only plan",),
    "reads-forward-only": ("forward-only above",),
    "parents-unchanged": ("same rows", "override above"),
    "reads-nothing-changed": ("reads only",),
    "same-data": ("compared",),
    "reads-changed-rows": ("rows of parents", "added parents", "keys", "kept rows"),
    "reads-every-column": ("all count",),
    "reads-changed-column": (
        "rows depend",
        "reads changed",
        "star gains",
        "star loses",
        "names gain",
        "names lose",
        "other meaning",
    ),
    "reads-changed-order": ("order of parents", "passes order on"),
    "reads-reordered-columns": ("star reordered",),
    "starts-elsewhere": ("start",),
    "categorized": ("by override",),
}


def false_claims(claim: Claim) -> list[str]:
    """What of a reason does not hold, or is checked by nobody."""
    problems, facts = [], set[str]()
    for sentence in _sentences(claim.change.reason):
        matching = [
            (name, check, m) for name, (pattern, check) in FACTS.items() if (m := re.fullmatch(pattern, sentence))
        ]
        if not matching:
            problems.append(f"no fact check for: {sentence}")
        elif not any(check(claim, m) for _, check, m in matching):
            problems.append(f"does not hold: {sentence}")
        facts.update(name for name, _, _ in matching)
    if not facts & set(OF_RULE.get(claim.change.rule, ())):
        problems.append(f"says nothing of its rule {claim.change.rule}: {claim.change.reason}")
    return [f"{claim.change.name}: {problem}" for problem in problems]


def _sentences(reason: str) -> list[str]:
    """The sentences of a reason; what an override or a forward-only sentence quotes belongs to it."""
    forward_only = "Its kind is|It is incremental in dbt|The plan is forward-only|Only forward-only"
    if re.match(rf"(?:@\w+|Somebody) categorized|{forward_only}", reason):
        return [reason]
    return SENTENCE_END.split(reason)
