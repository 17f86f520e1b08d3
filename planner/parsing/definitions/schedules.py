"""When a model is due, as MODEL says it: the zone of its cron, the unit that its time is counted in."""

from __future__ import annotations

from dataclasses import replace

from planner.intervals import UNITS, Cron, is_zone
from planner.parsing.definitions.properties import Property, word
from planner.parsing.sql.tokens import did_you_mean


def zone(given: Property) -> str:
    """`cron_tz`: the name of a time zone, '' for UTC; ProjectError for one that nobody knows."""
    name = given.text.strip()
    if name.lower() in ("utc", "etc/utc"):
        return ""
    if not is_zone(name):
        raise given.error(f"`{name}` is not a time zone.", "Name one like `Europe/Berlin` or `America/New_York`.")
    return name


def unit(given: Property) -> str:
    """`interval_unit`: what time is counted in; ProjectError for what is no unit."""
    text = word(given).lower()
    if text not in UNITS:
        raise given.error(f"`{given.text}` is not an interval unit.", did_you_mean(text, [*UNITS], most=len(UNITS)))
    return text


def unit_error(cron: Cron) -> str | None:
    """Why a cron cannot count in the unit that was given: its beats come sooner than a unit ends. None when it can."""
    own = replace(cron, given_unit="").unit
    if cron.given_unit and UNITS[cron.given_unit] > UNITS[own]:
        return f"`interval_unit {cron.given_unit}` is longer than the time between two beats of the cron, a {own}."
    return None
