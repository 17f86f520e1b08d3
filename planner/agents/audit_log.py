"""The audit log: a line of JSON for each call of a tool, in `.mergeplan/agents/audit.jsonl`."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from mergeplan.planner.errors import RequestError

LARGEST = 5 << 20  # bytes of the file, after which it is put aside
ASIDE = 3  # older files that are kept
LONGEST = 300  # characters of an argument
WAIT = 10.0  # seconds for another server that writes
_PASSWORD = re.compile(r"(?<=://)[^/\s@]+(?=@)|(?i:(?<=password=)|(?<=token=)|(?<=secret=))[^&\s]+")


@dataclass(frozen=True)
class AuditEntry:
    """A call of a tool: its caller, the decision, and the outcome."""

    principal: str
    tool: str
    arguments: Mapping[str, Any]
    decision: str  # `allow`, `deny`, `approved` or `declined` by a person, `unasked` if no person can be asked
    outcome: str = ""  # `begun`, `done`, `refused: ...`, `failed: ...`
    job: str = ""


class AuditLog:
    """The log of a project; several servers may write to it."""

    def __init__(self, folder: Path, secrets: Iterable[str] = ()) -> None:
        self.path = folder / "audit.jsonl"
        self._secrets = sorted(filter(None, secrets), key=len, reverse=True)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = FileLock(folder / "audit.lock", mode=0o600)

    def write(self, entry: AuditEntry) -> None:
        """Append an entry; raise RequestError if that fails: a call that is not logged is not answered."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        arguments = {name: self._redact_value(value) for name, value in entry.arguments.items()}
        row = {"at": at, **vars(entry), "arguments": arguments, "outcome": self._redact_value(entry.outcome)}
        line = json.dumps(row, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        try:
            with self._lock.acquire(timeout=WAIT):
                self._rotate_files(len(line))
                descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(line)
        except (OSError, Timeout) as error:
            reason = getattr(error, "strerror", None) or "it is locked"
            raise RequestError(f"The audit log cannot be written: {reason}.", hint=f"Look at {self.path}.") from None

    def _redact_value(self, value: Any) -> Any:
        """Return a value without secrets, with long texts cut."""
        if isinstance(value, str):
            text = _PASSWORD.sub("...", value)
            for secret in self._secrets:
                text = text.replace(secret, "...")
            return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters)"
        if isinstance(value, (list, tuple)):
            return [self._redact_value(item) for item in value[:50]]
        if value is None or isinstance(value, (bool, int, float)):
            return value
        return self._redact_value(str(value))

    def _rotate_files(self, more: int) -> None:
        if not self.path.exists() or self.path.stat().st_size + more <= LARGEST:
            return
        for number in range(ASIDE - 1, 0, -1):
            older = self.path.with_name(f"audit.{number}.jsonl")
            if older.exists():
                older.replace(self.path.with_name(f"audit.{number + 1}.jsonl"))
        self.path.replace(self.path.with_name("audit.1.jsonl"))
