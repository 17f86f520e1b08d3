"""Which unit tests passed, each by a digest of all that its outcome rests on."""

from collections.abc import Sequence
from datetime import timedelta

from mergeplan.planner.state import tables as t
from mergeplan.planner.state.transaction import ProjectStore, split_chunks

KEPT = timedelta(days=60)  # since a test was last asked about
FRESH = timedelta(days=1)  # until it is written again that it was


class PassedTests(ProjectStore):
    """The unit tests of one project that passed."""

    def filter_passed(self, digests: Sequence[str]) -> frozenset[str]:
        columns = t.passed_tests.c
        with self._database.reading() as tx:
            since, passed_tests = tx.now() - FRESH, dict[str, bool]()
            for part in split_chunks(digests):
                rows = tx.execute(tx.select(t.passed_tests).where(columns.digest.in_(part)))
                passed_tests |= {row.digest: row.at < since for row in rows}
        if old := [digest for digest, is_old in passed_tests.items() if is_old]:
            self.record(old)
        return frozenset(passed_tests)

    def record(self, digests: Sequence[str]) -> None:
        """Keep that these passed; what nobody has asked about for long is dropped."""
        with self._database.writing() as tx:
            current_time = tx.now()
            tx.put(t.passed_tests, [{"digest": digest, "at": current_time} for digest in digests])
            tx.execute(tx.delete(t.passed_tests).where(t.passed_tests.c.at < current_time - KEPT))
