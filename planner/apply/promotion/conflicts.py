"""A write that is repeated because another commit came between.

A killed run may continue in a Spark that is not its own, and its last commit comes late. The next writer begins before
that commit and is refused by the format. The commit names its batch, so that a repeated one begins where that one did.
"""

from collections.abc import Callable
from typing import TypeVar

from mergeplan.planner.errors import QueryError
from mergeplan.planner.model.table_format import FORMATS

TRIES = 3
T = TypeVar("T")


def retry_on_conflict(write: Callable[[], T], check: Callable[[], None]) -> T:
    """Return the result of a write, which is tried again after a conflict unless `check` raises.

    The format's refusal keeps a writer that has lost the table's lease from writing.
    """
    for _ in range(TRIES - 1):
        try:
            return write()
        except QueryError as error:
            if not any(form.is_conflict(error.condition or "", error.message) for form in FORMATS.values()):
                raise
            check()
    return write()
