"""What is wrong with a project or one of its nodes, in the child."""

from __future__ import annotations


class CompileError(Exception):
    """What is wrong, as a sentence, and the file and line where that is known."""

    is_sentence = True

    def __init__(self, message: str, place: tuple[str, int] = ("", 0)) -> None:
        super().__init__(message)
        self.place = place
