"""The result of a unit test: the expected and the actual content of each of its outputs."""

from dataclasses import dataclass

from mergeplan.planner.checks.diff.rows import RowDifference
from mergeplan.planner.engine.protocol import Rows
from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.parsing.definitions.unit_tests import UnitTest


@dataclass(frozen=True)
class OutputResult:
    """One output: `query` or a CTE's name, its expected and actual rows, and their differences."""

    output: str
    expected: Rows
    actual: Rows
    differences: tuple[RowDifference, ...]

    @property
    def ok(self) -> bool:
        return not self.differences


@dataclass(frozen=True)
class TestResult:
    """The result of a test; `error` if it could not run at all, `unchanged` if it passed before and did not run."""

    __test__ = False  # pytest must not collect it

    test: UnitTest
    outputs: tuple[OutputResult, ...] = ()
    error: MergeplanError | None = None
    unchanged: bool = False

    @property
    def ok(self) -> bool:
        return self.error is None and all(output.ok for output in self.outputs)

    @property
    def message(self) -> str:
        """The failures, in lines for a person; '' if there are none."""
        if self.error is not None:
            return str(self.error)
        return "\n".join(line for output in self.outputs for line in _output_lines(output))


def _output_lines(output: OutputResult) -> list[str]:
    return (
        []
        if output.ok
        else [f"Output `{output.output}` differs:", *(difference.text for difference in output.differences)]
    )
