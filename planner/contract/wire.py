"""Write and parse JSON lines, and build their JSON Schema: a union of all lines with `event` as its tag."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, get_args

from pydantic import Field, TypeAdapter, ValidationError

from mergeplan.planner.contract.base import DIALECT, OTHER_VERSION, VERSION
from mergeplan.planner.contract.lines import (
    AuditLine,
    BatchLine,
    ComparedLine,
    DroppedLine,
    ErrorLine,
    FailedLine,
    LateLine,
    LintLine,
    PendingLine,
    PlanLine,
    RecoveredLine,
    RepeatedLine,
    RestatingLine,
    SkippedLine,
    StageLine,
    TableDiffLine,
    TableLine,
    TestLine,
    TouchedLine,
    UndoneLine,
    ViewLine,
    WaitingLine,
    WarningLine,
)
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.errors import RequestError

Line = (
    StageLine
    | LintLine
    | TestLine
    | PlanLine
    | TableLine
    | BatchLine
    | AuditLine
    | ComparedLine
    | RestatingLine
    | TouchedLine
    | LateLine
    | WaitingLine
    | RepeatedLine
    | FailedLine
    | SkippedLine
    | ViewLine
    | RecoveredLine
    | PendingLine
    | UndoneLine
    | DroppedLine
    | WarningLine
    | TableDiffLine
    | ErrorLine
    | ResultLine
)
LINES = get_args(Line)


@cache
def line_type() -> TypeAdapter[Line]:
    """Made when a line is first read: it takes a tenth of a second, and who only writes does not need it."""
    return TypeAdapter(Annotated[Line, Field(discriminator="event")])


def read_line(text: str | bytes) -> Line | None:
    """A line, or None for what is none or has an event that is not known here; RequestError for another version."""
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
    """A line as JSON, without its line end."""
    return line.model_dump_json()


def lines_schema() -> dict[str, Any]:
    """The JSON Schema of a line as it is written (docs/schema/plan.json)."""
    title = {"$schema": DIALECT, "title": "A line of mergeplan's JSON output"}
    return title | line_type().json_schema(mode="serialization")
