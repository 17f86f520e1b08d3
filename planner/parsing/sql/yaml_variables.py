"""Find `{{ env_var('NAME') }}` in the text of a YAML file by a pattern, not by Jinja, so that no text is executed."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from mergeplan.planner.errors import Place, ProjectError

_TEXT = r"'[^'\n]*'|\"[^\"\n]*\""
_NUMBER = r"[+-]?\d+(?:\.\d+)?"
_WORD = r"[Tt]rue|[Ff]alse|[Nn]one"
_ENV = re.compile(
    rf"\{{\{{-?[ \t]*env_var\([ \t]*(?:'(?P<one>\w+)'|\"(?P<two>\w+)\")[ \t]*"
    rf"(?:,[ \t]*(?:default[ \t]*=[ \t]*)?(?P<default>{_TEXT}|{_NUMBER}|{_WORD})[ \t]*)?\)"
    r"(?P<filters>(?:[ \t]*\|[ \t]*\w+)*)[ \t]*-?\}\}"
)
_COMMENT = re.compile(r"(?:^|\s)#")
_JINJA = re.compile(r"\{\{|\{%-?[ \t]*(?:if|for|set|raw|macro|block|include|import|from|extends|call|filter|with)\b")
# The filters, as in Jinja; `int` and `float` refuse text that Jinja reads as 0.
_FILTERS: Mapping[str, Callable[[str], object]] = {
    "int": int,
    "float": float,
    "string": str,
    "trim": str.strip,
    "lower": str.lower,
    "upper": str.upper,
}
SUPPORTED = "Of Jinja, only `{{ env_var('NAME') }}` is supported here."
HINT = "It may have a default, and a filter: `{{ env_var('NAME', 1) }}`, `{{ env_var('NAME', '1') | int }}`."


@dataclass(frozen=True)
class Variable:
    """A use of an environment variable: its name, its default as text, and the filters that it passes through."""

    name: str
    default: str | None
    filters: tuple[str, ...]

    def value(self, environment: Mapping[str, str], place: Place) -> str:
        """Return the variable's value as text; raise ProjectError if it is not set, or no value of its filters."""
        value = environment.get(self.name, self.default)
        if value is None:
            hint = f"Set it, or give a default: `{{{{ env_var('{self.name}', '...') }}}}`."
            raise ProjectError(f"The environment variable `{self.name}` is not set.", place=place, hint=hint)
        for name in self.filters:
            if name not in _FILTERS:
                hint = f"The filters are {', '.join(_FILTERS)}."
                raise ProjectError(f"The filter `{name}` is not supported here.", place=place, hint=hint)
            try:
                value = str(_FILTERS[name](value))
            except (ValueError, OverflowError):
                number = "a whole number" if name == "int" else "a number"
                raise ProjectError(
                    f"The environment variable `{self.name}` is not {number}.", place=place, hint="Set it to one."
                ) from None
        return value


Replacement = Callable[[Variable, Place], str]


def replace_variables(path: str, text: str, replacement: Replacement) -> str:
    """Return the text with each use of a variable replaced, comments left alone; raise ProjectError for other Jinja."""
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if "{{" not in line and "{%" not in line:
            continue
        place = Place(path, number)
        masked = _ENV.sub(lambda match: "x" * len(match[0]), line)  # a default may contain ` #`
        start = match.start() if (match := _COMMENT.search(masked)) else len(line)
        code, comment = line[:start], line[start:]
        if _JINJA.search(_ENV.sub("", code)):
            raise ProjectError(SUPPORTED, place=place, hint=HINT)
        lines[number - 1] = _ENV.sub(partial(_replace_use, replacement, place), code) + comment
    return "\n".join(lines)


def _replace_use(replacement: Replacement, place: Place, match: re.Match[str]) -> str:
    filters = tuple(name.strip() for name in match["filters"].split("|")[1:])
    return replacement(Variable(match["one"] or match["two"], _default_text(match["default"]), filters), place)


def _default_text(literal: str | None) -> str | None:
    if literal is None or literal.lower() == "none":
        return None
    return literal[1:-1] if literal[0] in "'\"" else literal
