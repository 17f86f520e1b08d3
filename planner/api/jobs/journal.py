"""The files of one job: its record, the journal of its JSON lines, and what it wrote to standard error.

The process of a job writes its journal itself, so that it goes on when the server is killed.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from mergeplan.planner.api.jobs.job import JobRecord, JobRow, JobStatus, JobView
from mergeplan.planner.contract.lines import ErrorLine, PlanLine
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.contract.wire import Line, read_line, serialize_line
from mergeplan.planner.errors import Cancelled, RequestError

REFUSED_CODE = 4
CHUNK = 1 << 20


@dataclass(frozen=True)
class Journal:
    """The folder of a job."""

    folder: Path

    @property
    def lines_path(self) -> Path:
        return self.folder / "lines.jsonl"

    @property
    def log_path(self) -> Path:
        return self.folder / "stderr.log"

    def write(self, record: JobRecord) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        aside = self.folder / "job.json.new"
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(record.model_dump_json(indent=1))
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self.folder / "job.json")

    def read(self) -> JobRecord | None:
        """Return the record; None if it is missing or unreadable."""
        try:
            return JobRecord.model_validate_json((self.folder / "job.json").read_bytes())
        except (OSError, ValidationError):
            return None

    def write_failure(self, message: str) -> None:
        """Write that nothing was done, as the process would have."""
        lines = (ErrorLine(message=message, kind="MergeplanError"), ResultLine(ok=False))
        with self.lines_path.open("a", encoding="utf-8") as file:
            file.writelines(f"{serialize_line(line)}\n" for line in lines)

    def read_from(self, position: int) -> tuple[list[bytes], int]:
        """Return the complete lines from a position, at most some of many, and the position after them."""
        try:
            with self.lines_path.open("rb") as file:
                file.seek(position)
                data = file.read(CHUNK)
                while data and b"\n" not in data and (chunk := file.read(CHUNK)):
                    data += chunk  # a line may be larger
        except FileNotFoundError:
            return [], position
        end = data.rfind(b"\n") + 1
        return data[:end].splitlines(), position + end

    def lines(self) -> Iterator[bytes]:
        position = 0
        while True:
            lines, position = self.read_from(position)
            if not lines:
                return
            yield from lines

    def view(self, record: JobRecord) -> JobView:
        plan, result, errors, events = None, None, [], 0
        for text in self.lines():
            events += 1
            match _parse_line(text):
                case PlanLine(plan=shown):
                    plan = shown
                case ErrorLine() as error:
                    errors.append(error)
                case ResultLine() as last:
                    result = last
        if result is not None and result.plan is not None:
            plan = result.plan
        row = record.model_dump(include=set(JobRow.model_fields))
        plan_id = plan.id if record.kind.is_plan and plan else record.plan_id
        return JobView(**{**row, "plan_id": plan_id}, events=events, plan=plan, result=result, errors=tuple(errors))

    def outcome(self, exit_code: int | None) -> JobStatus:
        """Return the status of a job whose process has ended."""
        result, kinds, code = None, set(), exit_code or 0
        for text in self.lines():
            match _parse_line(text):
                case ErrorLine(kind=kind, exit_code=own):
                    kinds.add(kind)
                    code = code or own
                case ResultLine() as last:
                    result = last
        if Cancelled.__name__ in kinds:
            return JobStatus.CANCELLED
        if result is None:
            return JobStatus.INTERRUPTED
        if not kinds:
            return JobStatus.DONE
        return JobStatus.REFUSED if code == REFUSED_CODE else JobStatus.FAILED


def _parse_line(text: bytes) -> Line | None:
    words = (b'"event":"plan"', b'"event":"error"', b'"event":"result"')
    return parse_line(text) if any(word in text for word in words) else None


def parse_line(text: bytes) -> Line | None:
    """Parse a line; None for other text, because the process of a job may print beside its lines."""
    if not text.startswith(b"{"):
        return None
    try:
        return read_line(text)
    except RequestError:
        return None
