"""Explain why a text is not YAML: the error, its line, and the fix."""

import re

import yaml

from mergeplan.planner.errors import Place, ProjectError

_CONFLICT = re.compile(r"^(?:<{7}|>{7}|={7})(?: |$)", re.MULTILINE)
_SPACES = "Indent it with spaces: YAML allows no tabs there."
_QUOTES = "Put the value in quotes."


def find_conflict(path: str, text: str) -> ProjectError | None:
    conflict = _CONFLICT.search(text)
    if conflict is None:
        return None
    place = Place(path, text.count("\n", 0, conflict.start()) + 1)
    hint = "Resolve it, and remove the lines with these marks."
    return ProjectError(f"A merge conflict is left here: `{conflict[0].strip()}`.", place=place, hint=hint)


def explain_yaml_error(path: str, text: str, error: yaml.MarkedYAMLError) -> ProjectError:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return ProjectError(f"This is not YAML: {_parsers_words(error)}.", place=Place(path))
    lines = text.split("\n")
    if conflict := find_conflict(path, text):
        return conflict
    line = lines[mark.line] if mark.line < len(lines) else ""
    row, message, hint = _describe_problem(error, mark, line, lines)
    return ProjectError(message, place=Place(path, row + 1, mark.column + 1 if row == mark.line else 0), hint=hint)


def _describe_problem(
    error: yaml.MarkedYAMLError, mark: yaml.Mark, line: str, lines: list[str]
) -> tuple[int, str, str]:
    problem, context = error.problem or "", error.context or ""
    opened = error.context_mark.line if error.context_mark else mark.line
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return mark.line, "This line is indented with a tab.", _SPACES
    if "cannot start any token" in problem:
        character = line[mark.column : mark.column + 1]
        sign = "a backtick" if character == "`" else f"`{character}`"
        return mark.line, f"A value cannot begin with {sign}.", _QUOTES
    if "mapping values are not allowed" in problem:
        return _stray_colon(mark, line, lines)
    if "flow node" in context:
        lines_above = [*lines[: mark.line], lines[mark.line][: mark.column] if mark.line < len(lines) else ""]
        row = next((row for row in range(len(lines_above) - 1, -1, -1) if set("[{") & set(lines_above[row])), mark.line)
        bracket = "]" if lines_above[row].rfind("[") > lines_above[row].rfind("{") else "}"
        return _inside_brackets(mark, line, lines, row, bracket)
    if "flow" in context:
        return _inside_brackets(mark, line, lines, opened, "]" if "sequence" in context else "}")
    if "quoted scalar" in context or "double-quoted" in context:
        if "escape" in problem:
            hint = "Write `\\\\` for a backslash, or put the text in single quotes."
            return mark.line, "A backslash in double quotes begins an escape, and this one is none.", hint
        return opened, "The quote that opens in this line is not closed.", "Add the closing quote."
    if "block" in context and "scalar" not in context:
        return _stray_line(mark, line)
    return _describe_rare(error, mark)


def _stray_colon(mark: yaml.Mark, line: str, lines: list[str]) -> tuple[int, str, str]:
    if re.search(r":\s.*:(?:\s|$)", line):
        return mark.line, "A value with `: ` in it needs quotes.", "Put everything after the first `: ` in quotes."
    above = next((row for row in range(mark.line - 1, -1, -1) if _code_text(lines[row])), mark.line)
    code = _code_text(lines[above])
    if not re.search(r":(?:\s|$)", code):
        sign = "a space after its `:`" if ":" in code else "its `:`"
        return above, f"This line lacks {sign}: `{code}`.", "A key is written `key: value`."
    return mark.line, "This line is indented further than the one above, which has a value.", "Indent both alike."


def _inside_brackets(
    mark: yaml.Mark, line: str, lines: list[str], first_line: int, bracket: str
) -> tuple[int, str, str]:
    begins = "" if first_line == mark.line else f" It begins in line {first_line + 1}."
    kind = "list" if bracket == "]" else "mapping"
    if mark.line >= len(lines) or not line.strip():
        return first_line, f"The {kind} that begins in this line is not closed.", f"Add its `{bracket}`."
    character = line[mark.column : mark.column + 1]
    if character in tuple("]}") and character != bracket:
        return mark.line, f"`{character}` closes nothing here.{begins}", f"The {kind} ends with `{bracket}`."
    if character in tuple("]},"):
        return mark.line, f"A value is missing before `{character}`.{begins}", "Add it, or remove what separates it."
    message = f"The {kind} lacks a comma or its `{bracket}` before the end of this line: `{line.strip()}`.{begins}"
    return mark.line, message, f"Separate its items with commas, and end it with `{bracket}`."


def _stray_line(mark: yaml.Mark, line: str) -> tuple[int, str, str]:
    if line[: mark.column].strip():
        hint = "Put the whole value in quotes, or remove what follows it."
        return mark.line, f"Text follows a value that has ended: `{line[mark.column :].strip()}`.", hint
    hint = "Indent it like the lines of the same list or mapping."
    if line.lstrip().startswith("-"):
        return mark.line, "An item of a list stands among the keys of a mapping.", hint
    return mark.line, "The indentation of this line fits no line above.", hint


def _describe_rare(error: yaml.MarkedYAMLError, mark: yaml.Mark) -> tuple[int, str, str]:
    problem, context = error.problem or "", error.context or ""
    if "another document" in problem:
        return mark.line, "A second document begins here: `---`.", "Keep one document in the file."
    if "undefined alias" in problem or "alias" in context:
        return mark.line, "A value that begins with `*` refers to an anchor, and there is none.", _QUOTES
    if "tag" in problem:
        return mark.line, "A value that begins with `!` is a tag of YAML, which is not supported.", _QUOTES
    if "block scalar" in context:
        return mark.line, "Text follows the `|` or `>` of a text of several lines.", "Begin the text in the next line."
    if "for merging" in problem:
        return mark.line, "`<<` takes a mapping, or a list of mappings.", "Refer to one: `<<: *name`."
    return mark.line, f"This is not YAML: {_parsers_words(error)}.", ""


def _parsers_words(error: yaml.MarkedYAMLError) -> str:
    return f"{error.context or ''} {error.problem or ''}".strip()


def _code_text(line: str) -> str:
    return "" if line.lstrip().startswith("#") else line.strip()
