"""Show a plan, ask for confirmation and apply it."""

from dataclasses import dataclass

from mergeplan.planner.plan.costs import CostLimit
from mergeplan.planner.session.options import DataDiffOptions

NO_LIMIT = CostLimit()


@dataclass(frozen=True)
class Handling:
    auto_apply: bool
    explain: bool
    then_run: bool
    no_diff: bool
    no_prompts: bool
    note: str
    expect_digest: str | None
    limit: CostLimit = NO_LIMIT
    data_diff: DataDiffOptions | None = None  # what of the rows is compared when it is applied; None: nothing
    physical_plan: bool | None = None  # whether physical plans are; None: where Spark runs anyway, and not of prod

    @property
    def goes_on(self) -> bool:
        """True if a plan with nothing to apply still has a run or a comparison to do."""
        return self.then_run or self.data_diff is not None or bool(self.physical_plan)
