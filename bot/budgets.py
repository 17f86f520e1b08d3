"""What the planner may compute and compare for a pull request, and the arguments that tell it so. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mergeplan.bot.records import PullRecord
from mergeplan.planner.contract.base import Detail

Budget = tuple[int | None, float | None]  # bytes and seconds


@dataclass(frozen=True)
class DiffRules:
    """How much of the rows is compared and shown, and what that may cost."""

    detail: tuple[tuple[str, Detail], ...] = (("*", "counts"),)  # selector -> detail; the last that fits counts
    unmasked: tuple[str, ...] = ()
    seconds: float = 60.0  # for all models of a plan together
    rows: int = 50_000_000  # of a model, before and after together

    @property
    def is_off(self) -> bool:
        return all(detail == "off" for _, detail in self.detail)

    def nothing(self) -> DiffRules:
        return replace(self, detail=(("*", "off"),))

    def without_samples(self) -> DiffRules:
        return replace(self, detail=tuple((s, "counts" if d == "sample" else d) for s, d in self.detail))


def diff_arguments(rules: DiffRules, prefix: str = "") -> tuple[str, ...]:
    """Return what of rows is compared, as arguments: of `plan` they begin with `--data-diff`."""
    detail = prefix.removesuffix("-") or "detail"
    return (
        *(f"--{detail}={selector}={word}" for selector, word in rules.detail),
        *(f"--{prefix}unmasked={column}" for column in rules.unmasked),
        f"--{prefix}seconds={rules.seconds:g}",
        f"--{prefix}rows={rules.rows}",
    )


def cost_limits(record: PullRecord, budget: Budget) -> tuple[str, ...]:
    """Return the limits of what may be computed: the budget, or what a person approved for this head."""
    names = ("--max-bytes", "--max-seconds")
    limits = zip(names, budget, record.cost_approval, strict=True)
    return tuple(
        f"{name}={max(default_limit, approved_limit):.0f}"
        for name, default_limit, approved_limit in limits
        if default_limit is not None
    )
