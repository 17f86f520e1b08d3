"""Uses outside of the project that a plan's changes affect."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mergeplan.planner.model.exposure import Exposure
from mergeplan.planner.plan.change import Change, ChangeKind


@dataclass(frozen=True)
class ExposureHit:
    """An exposure with those of its models whose rows or columns a plan changes."""

    exposure: Exposure
    models: tuple[str, ...]


def exposures_hit(exposures: Iterable[Exposure], changes: Sequence[Change]) -> tuple[ExposureHit, ...]:
    """Return the exposures with a model that is removed, or that shows other rows, other values or fewer columns."""
    changed = {change.name for change in changes if _is_felt(change)}
    hits = ((exposure, tuple(name for name in exposure.models if name in changed)) for exposure in exposures)
    return tuple(ExposureHit(exposure, models) for exposure, models in hits if models)


def _is_felt(change: Change) -> bool:
    columns = change.columns
    return change.change is ChangeKind.REMOVED or bool(columns.every or columns.altered or columns.removed)
