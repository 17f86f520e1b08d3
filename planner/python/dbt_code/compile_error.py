"""What is wrong with a project or one of its nodes, in the child."""


class CompileError(Exception):
    """What is wrong, as a sentence."""

    is_sentence = True
