"""The result of checking a claim: Spark's analyzer agrees, a rule explains the difference, or it was not checked."""

from dataclasses import dataclass
from enum import StrEnum

COMPARING = "the comparison is running"  # the detail of what is unchecked while Spark compares it


class CheckState(StrEnum):
    """The result of Spark's analyzer for a model that keeps rows."""

    AGREES = "agrees"
    EXPLAINED = "explained"  # its plans differ by what a named rule says is the same
    UNCHECKED = "unchecked"
    DISAGREES = "disagrees"  # the model is recomputed


@dataclass(frozen=True)
class Check:
    """The check of one claim; `detail` is the rule that explains it, why it was not checked, or what Spark sees."""

    state: CheckState
    detail: str = ""
