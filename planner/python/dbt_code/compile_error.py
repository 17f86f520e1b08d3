"""The error of a project or one of its nodes, in the child."""


class CompileError(Exception):
    """The error as a sentence, and its file and line if they are known."""

    is_sentence = True

    def __init__(self, message: str, place: tuple[str, int] = ("", 0)) -> None:
        super().__init__(message)
        self.place = place
