"""The result of a config.py as JSON data: values, the line of each key, and the reasons for missing values."""

import os
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from pathlib import PurePath
from typing import Any

from mergeplan.planner.python.config_code.references import END, START, Number, References, Text, Variable
from mergeplan.planner.python.config_code.stand_ins import Member, Recorded, Unknown

MOST = 5_000  # values, each counted wherever it is used, and hundreds of characters
DEEPEST = 60
Path = tuple[str | int, ...]


class LinedDict(dict[Any, Any]):
    """A mapping as it was written, with the lines of its keys."""

    line, lines = 0, dict[Any, int]()


class LinedList(list[Any]):
    """A list as it was written, with the lines of its items."""

    line, lines = 0, dict[Any, int]()


def note_lines(value: Any, line: int, lines: dict[Any, int]) -> Any:
    new = LinedDict(value) if type(value) is dict else LinedList(value) if type(value) is list else value
    if new is not value:
        new.line, new.lines = line, lines
    return new


def record_expression(value: Any, line: int, lines: dict[Any, int], references: References) -> Any:
    """Return an expression's result: a new instance of a SQLMesh class gets its lines, a text its references."""
    if isinstance(value, Recorded) and not value.__dict__["line"]:
        value.__dict__.update(line=line, lines=lines)
    return references.track(value)


@dataclass
class Recording:
    """A recording of values as data: `lines` by path, and in `unclear`, by path, why there is no value."""

    references: References
    root: str
    home: str
    lines: list[tuple[Path, int]] = field(default_factory=list)
    unclear: list[tuple[Path, str]] = field(default_factory=list)
    count: int = 0

    def record(self, value: Any, key_path: Path, line: int, depth: int = 0) -> Any:
        """Return the value as data; `line` is that of its key."""
        recorded_line = value.__dict__["line"] if isinstance(value, Recorded) else getattr(value, "line", 0)
        line = line or (recorded_line if isinstance(recorded_line, int) else 0)
        self._count_values(1, depth, line)
        if line:
            self.lines.append((key_path, line))
        if isinstance(value, Recorded):
            return self._record_instance(value, key_path, depth)
        if isinstance(value, Mapping):
            return self._record_mapping(value, getattr(value, "lines", {}), key_path, line, depth)
        if isinstance(value, list | tuple | Set):
            items = sorted(value, key=str) if isinstance(value, Set) else value
            lines = getattr(value, "lines", {})
            return [
                self.record(item, (*key_path, index), lines.get(index, 0), depth + 1)
                for index, item in enumerate(items)
            ]
        return self._record_scalar(value, key_path, line)

    def _record_instance(self, value: Recorded, key_path: Path, depth: int) -> Any:
        if not value.is_exact:
            return self._note_unclear(
                key_path, f"`{type(value).__name__}`, a class of this project, decides the configuration here."
            )
        attributes = value.__dict__
        if key_path == ("gateways",) and value.stands_for == "GatewayConfig":  # one without a name is the default one
            return {"default": self.record(value, (*key_path, "default"), attributes["line"], depth + 1)}
        return self._record_mapping(attributes["keywords"], attributes["lines"], key_path, attributes["line"], depth)

    def _record_mapping(
        self, values: Mapping[Any, Any], lines: Mapping[Any, int], key_path: Path, line: int, depth: int
    ) -> Any:
        data = {}
        for key, value in values.items():
            if isinstance(key, bool) or not isinstance(key, str | int):
                self.references.refuse("A key must be a plain text.", lines.get(key, line))
            name = str(self._record_text(key, key_path, line)) if isinstance(key, str) else str(key)
            data[name] = self.record(value, (*key_path, name), lines.get(key, 0), depth + 1)
        return data

    def _record_scalar(self, value: Any, key_path: Path, line: int) -> Any:
        match value:
            case None | bool() | float():
                return value
            case Member() | Enum():
                return self._record_scalar(value.value, key_path, line)
            case int():
                if abs(value) >= 2**63:
                    self.references.refuse("This number is too large.", line)
                return int(value)
            case Number():
                return self._record_text(value.text, key_path, line)
            case str() | PurePath():
                return self._record_text(value, key_path, line)
            case date():
                return value.isoformat()
            case type():
                name = value.stands_for if issubclass(value, Recorded) else value.__name__
                return self._note_unclear(key_path, f"The class `{name}` decides the configuration here.")
        if isinstance(value, Unknown):
            return self._note_unclear(key_path, value._why)
        return self._note_unclear(
            key_path, f"A value of Python's type `{type(value).__name__}` decides the configuration here."
        )

    def _count_values(self, more: int, depth: int, line: int) -> None:
        self.count += more
        if self.count > MOST or depth > DEEPEST:
            self.references.refuse("This value is too large, or nested too deeply.", line)

    def _note_unclear(self, key_path: Path, why: str) -> None:
        self.unclear.append((key_path, why))

    def _record_text(self, value: Any, key_path: Path, line: int) -> str | None:
        text = value.raw if isinstance(value, Text) else str.__str__(os.fspath(value))
        self._count_values(len(text) // 100, 0, line)
        parsed_text = Text(text, self.references)
        if reason := next((part.why for part in parsed_text.parts if isinstance(part, Variable) and part.why), ""):
            self._note_unclear(key_path, reason)
            return None
        if any(START in part or END in part for part in parsed_text.parts if isinstance(part, str)):
            self.references.refuse(
                "A text that is made of what is not known here cannot be read, such as `repr` of a variable.", line
            )
        if any("\ud800" <= character <= "\udfff" for character in text):
            self.references.refuse("This text holds a character that is not Unicode.", line)
        if self.home in text and not text.startswith(self.root):
            reason = "The home folder decides the configuration here: it is another on each machine."
            self.references.refuse(reason, line)
        return text


def variables_data(variables: list[Variable]) -> list[dict[str, Any]]:
    return [{"name": variable.name, "default": variable.default, "filters": variable.filters} for variable in variables]
