"""Write and parse JSON lines, and build their JSON Schema: a union of all lines with `event` as its tag."""

from functools import cache
from typing import Annotated, Any, get_args

from pydantic import Field, TypeAdapter, ValidationError

from mergeplan.planner.contract import lines
from mergeplan.planner.contract.base import DIALECT, OTHER_VERSION, VERSION
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.errors import RequestError

Line = (
    lines.StageLine
    | lines.LintLine
    | lines.TestLine
    | lines.PlanLine
    | lines.TableLine
    | lines.BatchLine
    | lines.AuditLine
    | lines.ComparedLine
    | lines.RefutedLine
    | lines.RestatingLine
    | lines.TouchedLine
    | lines.LateLine
    | lines.WaitingLine
    | lines.RepeatedLine
    | lines.FailedLine
    | lines.SkippedLine
    | lines.ViewLine
    | lines.RecoveredLine
    | lines.PendingLine
    | lines.UndoneLine
    | lines.DroppedLine
    | lines.WarningLine
    | lines.TableDiffLine
    | lines.ErrorLine
    | ResultLine
)
LINES = get_args(Line)


@cache
def line_type() -> TypeAdapter[Line]:
    """Made when a line is first read: it takes a tenth of a second, and who only writes does not need it."""
    return TypeAdapter(Annotated[Line, Field(discriminator="event")])


def read_line(text: str | bytes) -> Line | None:
    """Return a line, or None for another text or an unknown event; RequestError for another version."""
    try:
        return line_type().validate_json(text)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            if detail["type"] == OTHER_VERSION:
                raise RequestError(
                    f"The planner writes version {detail['ctx']['version']} of its JSON, and this is mergeplan "
                    f"with version {VERSION}.",
                    hint="Install the same mergeplan on both sides.",
                ) from None
        return None


def serialize_line(line: Line) -> str:
    """Return a line as JSON, without its line end."""
    return line.model_dump_json()


def lines_schema() -> dict[str, Any]:
    """Return the JSON Schema of a line as it is written (docs/schema/plan.json)."""
    title = {"$schema": DIALECT, "title": "A line of mergeplan's JSON output"}
    return title | line_type().json_schema(mode="serialization")
