"""What the rules said of models and Spark's analyzer did not agree with: such a table is never kept."""

from collections.abc import Mapping

from mergeplan.planner.state import tables as t
from mergeplan.planner.state.transaction import ProjectStore


class RefutedClaims(ProjectStore):
    """The refuted claims of one project. None is dropped: a plan that was made by one must come out the same again."""

    def all(self) -> Mapping[str, str]:
        """Claim -> what Spark's analyzer sees differently."""
        with self._database.reading() as tx:
            return {row.claim: row.reason for row in tx.execute(tx.select(t.refuted_claims))}

    def record(self, refuted: Mapping[str, tuple[str, str]]) -> None:
        with self._database.writing() as tx:
            current_time = tx.now()
            rows = [
                {"claim": c, "model": m, "reason": reason, "at": current_time}
                for c, (m, reason) in sorted(refuted.items())
            ]
            tx.put(t.refuted_claims, rows)
