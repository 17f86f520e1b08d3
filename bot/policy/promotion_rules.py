"""`cicd_bot.rules` as it is written: who must approve which changes, what is blocked, when prod is frozen."""

import re
from datetime import date, datetime, time
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from mergeplan.bot.policy.approvals import ReviewRule
from mergeplan.bot.policy.freezes import Freeze
from mergeplan.planner.data_field import describe
from mergeplan.planner.intervals import cron_error, is_zone

CATEGORY_WORDS = ("added", "removed", "breaking", "non-breaking", "forward-only", "metadata", "equivalent", "undecided")


def _wrap_in_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _parse_category(word: str) -> str:
    if word.lower().replace("_", "-") not in CATEGORY_WORDS:
        raise ValueError(f"it is one of {', '.join(CATEGORY_WORDS)}")
    return word.lower().replace("-", "_")


def _parse_person(name: str) -> str:
    if not re.fullmatch(r"@?[A-Za-z0-9][A-Za-z0-9-]*(\[bot\])?(/[A-Za-z0-9_.-]+)?", name):
        raise ValueError("it is a login, or a team as org/team")
    return name.removeprefix("@").lower()


Words = Annotated[tuple[str, ...], BeforeValidator(_wrap_in_list)]
Categories = Annotated[
    tuple[Annotated[str, AfterValidator(_parse_category), WithJsonSchema({"enum": list(CATEGORY_WORDS)})], ...],
    BeforeValidator(_wrap_in_list),
]
Approvers = Annotated[tuple[Annotated[str, AfterValidator(_parse_person)], ...], BeforeValidator(_wrap_in_list)]


class FreezeWindow(BaseModel):
    """Time in which nothing that the rule is about is promoted: from `start` to `end`, or `hours` from each `cron`."""

    model_config = ConfigDict(extra="forbid")

    start: datetime | date | None = describe(None, "The beginning, in the time zone `zone`.")
    end: datetime | date | None = describe(None, "The end; a day stands for its first moment.")
    cron: str = describe("", "The beginning of each freeze, as a cron.")
    hours: float = Field(default=0.0, ge=0, le=24 * 366, description="The hours that each freeze lasts.")
    zone: str = describe("UTC", "The time zone, such as `Europe/Berlin`.")
    reason: str = Field(default="", max_length=200, description="The reason, which the pull request shows.")

    @model_validator(mode="after")
    def _check_window(self) -> Self:
        if not is_zone(self.zone):
            raise ValueError(f"{self.zone!r} is no time zone")
        if bool(self.cron) == bool(self.start or self.end):
            raise ValueError("it has either `start` and `end`, or `cron` and `hours`")
        if self.cron:
            if not self.hours:
                raise ValueError("a freeze by `cron` needs `hours`")
            if wrong := cron_error(self.cron):
                raise ValueError(f"{self.cron!r} is no cron expression: {wrong}")
        elif self.start is None or self.end is None or _normalize_moment(self.start) >= _normalize_moment(self.end):
            raise ValueError("`start` must be before `end`, and both are needed")
        return self

    def freeze(self) -> Freeze:
        start, end = (_normalize_moment(day) if day else None for day in (self.start, self.end))
        return Freeze(self.zone, start, end, self.cron, self.hours, self.reason)


def _normalize_moment(value: datetime | date) -> datetime:
    timestamp = value if isinstance(value, datetime) else datetime.combine(value, time())
    if timestamp.tzinfo:
        raise ValueError("write a time without an offset: `zone` is its time zone")
    return timestamp


class PromotionRule(BaseModel):
    """What a change of some models needs before it reaches prod."""

    model_config = ConfigDict(extra="forbid")

    models: Words = describe(("*",), "Names, globs or `tag:x`; the rule is about changes of these models.")
    categories: Categories = describe((), "Only changes of these categories; all by default.")
    approvals: int | None = Field(default=None, ge=0, le=20, description="How many people must approve the plan.")
    approvers: Approvers = describe((), "The approvers: logins and teams as `org/team`.")
    code_owners: bool = describe(False, "Whether an owner of each affected file must approve.")
    reader_owners: bool = describe(
        False, "Whether an owner of each model in another project that reads what changes must approve."
    )
    block: Categories = describe((), "Categories that are not promoted.")
    freeze: tuple[FreezeWindow, ...] = describe((), "The times in which nothing is promoted.")

    def rule(self) -> ReviewRule:
        """Return the rule as data; a rule that names approvers needs one of them."""
        approvals = int(bool(self.approvers)) if self.approvals is None else self.approvals
        frozen = tuple(window.freeze() for window in self.freeze)
        people = (approvals, self.approvers, self.code_owners)
        return ReviewRule(self.models, self.categories, *people, self.block, frozen, self.reader_owners)
