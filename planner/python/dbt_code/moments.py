"""The time of a run as templates read it: a mark in the text, which SQL replaces by the time.

The planner knows the marks (`files/dbt/moments.py`). A template may format the time and add to it. A decision by it
cannot be followed, so a text with marks is compared with those of several real times.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any

from mergeplan.planner.python.dbt_code.compile_error import CompileError

MARK = "\ue004{}|{}|{}\ue005"  # the zone (`utc` or `local`), seconds that are added, and the format
MARKED = re.compile("\ue004(utc|local)\\|(-?[0-9.]+)\\|([^\ue005]*)\ue005")
UTC = timezone.utc  # noqa: UP017 - the Python of a dbt may be older than ours
TIMES = (  # far apart, and equal in nothing; the present is one more
    datetime(1995, 3, 4, 5, 6, 7, 891_234, tzinfo=UTC),
    datetime(2087, 7, 13, 21, 54, 33, 345_678, tzinfo=UTC),
)


def _refuse(moment: Any, *_: Any) -> Any:
    raise moving_time_error(moment._name)


class Moment:
    """The time of the run, with what is added to it."""

    def __init__(self, name: str, zone: str, shown: str, offset: timedelta = timedelta(0)) -> None:
        """Take `shown`, the format of its text, and `name`, the template's name for it."""
        self._name, self._zone, self._shown, self._offset = name, zone, shown, offset

    def strftime(self, format: str) -> str:
        return MomentText(self._name, MARK.format(self._zone, self._offset.total_seconds(), format))

    def date(self) -> Moment:
        return Moment(self._name, self._zone, "%Y-%m-%d", self._offset)

    def astimezone(self, zone: Any = None) -> Moment:
        """Return the same time for UTC; refuse other zones."""
        if self._zone != "utc" or str(zone) != "UTC":
            raise moving_time_error(self._name)
        return Moment(self._name, "utc", "%Y-%m-%d %H:%M:%S.%f+00:00", self._offset)

    def __str__(self) -> str:
        return self.strftime(self._shown)

    def __add__(self, other: Any) -> Moment:
        if not isinstance(other, timedelta):
            raise moving_time_error(self._name)
        return Moment(self._name, self._zone, self._shown, self._offset + other)

    def __sub__(self, other: Any) -> Moment:
        return self + -other if isinstance(other, timedelta) else self + other

    __getattr__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __hash__ = _refuse


class MomentText(str):
    """The mark of a time, which represents another text in each run: no decision may depend on it."""

    def __new__(cls, name: str, text: str) -> MomentText:
        made = super().__new__(cls, text)
        made._name = name
        return made

    _name: str

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = __int__ = __float__ = _refuse
    __getitem__ = __contains__ = __iter__ = __len__ = _refuse


def replace_marks(text: str, time: datetime) -> str:
    return MARKED.sub(lambda match: (time + timedelta(seconds=float(match[2]))).strftime(match[3]), text)


def moving_time_error(name: str) -> CompileError:
    """Return the error of a template that does more with the time than write it."""
    return CompileError(
        f"Its text is another one each time: it reads `{name}`. Let SQL ask for the time, or give it as a variable"
    )
