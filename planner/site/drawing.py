"""Boxes of one size and the curves between them: what a page draws a graph of models with."""

from dataclasses import dataclass
from typing import Generic, TypeVar

BoxT = TypeVar("BoxT")
Corner = tuple[int, int]  # the top left one of a box


@dataclass(frozen=True)
class Grid:
    width: int
    height: int
    gap: int

    def curve(self, start: Corner, end: Corner) -> str:
        """Return the path of a line from the right side of one box to the left side of another."""
        x1, y1 = start[0] + self.width, start[1] + self.height // 2
        x2, y2 = end[0], end[1] + self.height // 2
        bend = max(self.gap // 2, (x2 - x1) // 2)
        return f"M{x1} {y1} C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"


@dataclass(frozen=True)
class Drawing(Generic[BoxT]):
    boxes: tuple[BoxT, ...]
    curves: tuple[str, ...]
    width: int
    height: int
    box_width: int
    box_height: int
