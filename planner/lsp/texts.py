"""Places in a text: offsets in it, and the lines and UTF-16 columns by which editors count."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Span:
    """A part of a text, by offsets; `end` is exclusive."""

    start: int
    end: int

    def holds(self, offset: int) -> bool:
        return self.start <= offset <= self.end


@dataclass(frozen=True)
class FileSpan:
    path: str
    span: Span


@dataclass(frozen=True)
class Edit:
    """A text in place of a part of a file; an empty part is an insertion."""

    path: str
    span: Span
    text: str


@dataclass(frozen=True)
class Lines:
    text: str
    mark: int = 0  # 1 where the client counts a byte order mark before the text

    @cached_property
    def starts(self) -> tuple[int, ...]:
        return (0, *(index + 1 for index, character in enumerate(self.text) if character == "\n"))

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and the UTF-16 column of an offset, from 0."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self.starts, offset) - 1
        return line, _utf16_length(self.text[self.starts[line] : offset]) + (self.mark if line == 0 else 0)

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line and a UTF-16 column, from 0; clamp places outside of the text."""
        if line >= len(self.starts):
            return len(self.text)
        start, end = self.starts[max(line, 0)], self.line_end(max(line, 0))
        part = self.text[start:end]
        column -= self.mark if line == 0 else 0
        if part.isascii():
            return start + min(max(column, 0), len(part))
        units = 0
        for index, character in enumerate(part):
            if units >= column:
                return start + index
            units += _utf16_length(character)
        return end

    def line_end(self, line: int) -> int:
        """Return the offset at which a line ends, before its newline."""
        return self.starts[line + 1] - 1 if line + 1 < len(self.starts) else len(self.text)

    def word_at(self, line: int, column: int) -> Span:
        """Return the word that begins at a line and column, both from 1 (0: unknown), or without a column the line."""
        row = min(max(line - 1, 0), len(self.starts) - 1)
        start, end = self.starts[row], self.line_end(row)
        if not column:
            text = self.text[start:end]
            return Span(start + len(text) - len(text.lstrip()), start + len(text.rstrip()))
        begin = last = min(start + column - 1, end)
        while last < end and (self.text[last].isalnum() or self.text[last] in "_@.`"):
            last += 1
        return Span(begin, max(last, min(begin + 1, end)))


def apply_edits(text: str, edits: list[Edit]) -> str:
    """Return the text after edits, which must not overlap."""
    for edit in sorted(edits, key=lambda edit: edit.span.start, reverse=True):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


def _utf16_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
