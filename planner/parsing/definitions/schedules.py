"""The schedule of a model in its MODEL block: the time zone of its cron, and the unit of its intervals."""

from dataclasses import replace

from mergeplan.planner.intervals import CRON_HINT, UNITS, Cron, cron_error, is_zone
from mergeplan.planner.parsing.definitions.properties import Property, word
from mergeplan.planner.parsing.sql.tokens import did_you_mean


def cron(prop: Property) -> Cron:
    """Return the cron of a property; raise ProjectError for an invalid expression."""
    if reason := cron_error(prop.text):
        first, below, _ = prop.text.partition("\n")
        if below:
            raise prop.error(f"`cron {first}` goes on in the next line.", "Write a comma at the end of the line.")
        raise prop.error(f"`{prop.text}` is not a cron expression ({reason.rstrip('.')}).", CRON_HINT)
    return Cron(prop.text)


def read_zone(prop: Property) -> str:
    """Return the time zone of `cron_tz`, '' for UTC; raise ProjectError if it is unknown."""
    name = prop.text.strip()
    if name.lower() in ("utc", "etc/utc"):
        return ""
    if not is_zone(name):
        raise prop.error(f"`{name}` is not a time zone.", "Use one like `Europe/Berlin` or `America/New_York`.")
    return name


def read_unit(prop: Property) -> str:
    text = word(prop).lower()
    if text not in UNITS:
        raise prop.error(f"`{prop.text}` is not an interval unit.", did_you_mean(text, [*UNITS], most=len(UNITS)))
    return text


def unit_error(cron: Cron) -> str | None:
    """Return why the given unit does not fit the cron, or None: its ticks are closer together than a unit."""
    step = replace(cron, given_unit="").unit
    if cron.given_unit and UNITS[cron.given_unit] > UNITS[step]:
        return f"`interval_unit {cron.given_unit}` is longer than the time between two ticks of the cron (one {step})."
    return None
