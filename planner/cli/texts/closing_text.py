"""The last line of an apply or a run: what was computed, and how long it took."""

from collections.abc import Collection

from mergeplan.planner.apply.outcome import Outcome
from mergeplan.planner.wording import count_noun, duration_text


def closing_text(outcome: Outcome, computed_names: Collection[str], seconds: float) -> str:
    """Return a text such as `Computed 3 models in 4 batches: 21 rows, 11 s.`, with failed and missing models."""
    filled, took = outcome.filled, duration_text(seconds)
    missed = [f"{count_noun(len(failures), 'model')} failed"] if (failures := filled.failures) else []
    missed += [f"{count_noun(len(filled.skipped), 'model')} not computed"] if filled.skipped else []
    if not computed_names:
        result = "; ".join(missed) or "no table was computed"
        return f"Done in {took}: {result}."
    batches, rows = count_noun(filled.batches, "batch", "batches"), count_noun(filled.rows, "row")
    return (
        "; ".join([f"Computed {count_noun(len(computed_names), 'model')} in {batches}: {rows}, {took}", *missed]) + "."
    )
