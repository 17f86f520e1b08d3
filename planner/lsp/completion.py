"""Suggestions for a place: properties of MODEL and their values, tables, columns in scope, macros, functions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from mergeplan.planner.lsp.names import names_of
from mergeplan.planner.lsp.project_view import ProjectView
from mergeplan.planner.lsp.sql_file import SqlFile, read_sql_file
from mergeplan.planner.lsp.texts import Span
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import PROPERTIES
from mergeplan.planner.model.table_format import FILE_FORMATS, TABLE_FORMATS
from mergeplan.planner.parsing.definitions.audits.audits import property_names as audit_property_names
from mergeplan.planner.parsing.definitions.audits.builtin_audits import BUILT_IN as AUDITS
from mergeplan.planner.parsing.files.lint_config import BUILT_IN as RULES
from mergeplan.planner.parsing.files.model_file import property_names
from mergeplan.planner.parsing.macros.expand import BUILT_IN
from mergeplan.planner.parsing.sql.macro_scope import DATES
from mergeplan.planner.parsing.sql.spark_registry import OPEN, OPERATORS

CURSOR = "mergeplan_cursor"  # marks the place of the cursor, so that an unfinished text can be parsed
_WORD = re.compile(r"(?<![\w@])[\w@]*\Z")
_TABLE_WORD = re.compile(r"\b(FROM|JOIN)\s+([\w.`]*)\Z", re.IGNORECASE)
_QUALIFIED = re.compile(r"(?<!\w)(\w+)\.\w*\Z")
_READS = re.compile(r"\b(?:FROM|JOIN)\s+((?:\w+\.)+\w+)(?:\s+(?:AS\s+)?(\w+))?", re.IGNORECASE)
_NO_ALIAS = {"ON", "USING", "WHERE", "JOIN", "LEFT", "RIGHT", "INNER", "FULL", "CROSS", "GROUP", "ORDER", "LIMIT"}
_KEYWORDS = tuple(
    """SELECT FROM WHERE JOIN LEFT JOIN GROUP BY ORDER BY HAVING QUALIFY LIMIT UNION ALL DISTINCT CASE WHEN THEN ELSE
    END AND OR NOT IN IS NULL BETWEEN LIKE AS ON USING OVER PARTITION WITH CAST""".split()
)
VALUES = {
    "kind": tuple(kind.value for kind in Kind),
    "cron": ("'@hourly'", "'@daily'", "'@weekly'", "'@monthly'", "'@yearly'"),
    "interval_unit": ("hour", "day", "month", "year", "five_minute", "quarter_hour", "half_hour"),
    "storage_format": tuple(FILE_FORMATS),
    "table_format": tuple(TABLE_FORMATS),
    "audits": tuple(sorted(AUDITS)),
    "ignored_rules": tuple(sorted(RULES)),
    **dict.fromkeys(("blocking", "enabled", "formatting", "optimize_query", "skip", "standalone"), ("true", "false")),
    **{key: ("true", "false") for key, row in PROPERTIES.items() if isinstance(row.default, bool)},
}


class ItemKind(Enum):
    PROPERTY = auto()
    VALUE = auto()
    MODEL = auto()
    COLUMN = auto()
    ALIAS = auto()
    MACRO = auto()
    FUNCTION = auto()
    KEYWORD = auto()


@dataclass(frozen=True)
class Item:
    """One suggestion, in place of `span`; `rank` sorts it, lower first."""

    label: str
    kind: ItemKind
    span: Span
    detail: str = ""
    rank: int = 5


def complete_sql(view: ProjectView, path: str, text: str, offset: int) -> tuple[Item, ...]:
    preceding_text = text[:offset]
    word = _WORD.search(preceding_text)
    start = word.start() if word else offset
    span = Span(start, offset)
    file = read_sql_file(path, text, view.project.defaults.dialect)
    if preceding_text[start : start + 1] == "@":
        return tuple(_macro_items(view, span))
    if (inside := _block_items(file, text, span)) is not None:
        return tuple(inside)
    if match := _TABLE_WORD.search(preceding_text):
        return tuple(_table_items(view, text, Span(offset - len(match[2]), offset)))
    if qualified := _QUALIFIED.search(preceding_text):
        return tuple(_column_items(view, path, text, span, qualified[1].lower()))
    keyword_items = (Item(word, ItemKind.KEYWORD, span, "", 8) for word in dict.fromkeys(_KEYWORDS))
    return (*_column_items(view, path, text, span, ""), *_function_items(span), *keyword_items)


def signature_at(text: str, offset: int) -> tuple[str, int] | None:
    """Return the signature of the function whose brackets are open at an offset, and the number of its argument."""
    depth = argument = 0
    for index in range(offset - 1, max(offset - 4000, -1), -1):
        character = text[index]
        if character == ")":
            depth += 1
        elif character == "(":
            if depth == 0:
                name = re.search(r"(?<!\w)(\w+)\s*\Z", text[max(index - 80, 0) : index])
                label = name and _function_signatures().get(name[1].lower())
                return (label, argument) if label else None
            depth -= 1
        elif character == "," and depth == 0:
            argument += 1
        elif character == ";":
            return None
    return None


def _block_items(file: SqlFile, text: str, span: Span) -> Iterator[Item] | None:
    """Return suggestions in a MODEL block: keys after a comma, values after a key; None outside of one."""
    tokens = [token for token in file.tokens if token.start < span.start]
    if not tokens or tokens[0].text.upper() not in ("MODEL", "AUDIT") or any(t.text == ";" for t in tokens):
        return None
    depth, last = 0, 0
    for index, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if (token.text == "(" and depth == 1) or (token.text == "," and depth == 1):
            last = index
    if depth < 1:
        return None
    key = tokens[last + 1] if last + 1 < len(tokens) else None
    return _key_items(file, span, tokens[0].text.upper()) if key is None else _value_items(key, text, span)


def _key_items(file: SqlFile, span: Span, block: str) -> Iterator[Item]:
    written = {prop.key for prop in file.properties if prop.at.start != span.start}
    for name in property_names() if block == "MODEL" else audit_property_names():
        if name not in written:
            yield Item(name, ItemKind.PROPERTY, span, f"property of {block}")


def _value_items(key: Token, text: str, span: Span) -> Iterator[Item]:
    quoted = text[span.start - 1 : span.start] == "'"
    for value in VALUES.get(key.text.lower(), ()):
        bare = value.strip("'") if quoted else value
        yield Item(bare, ItemKind.VALUE, span, f"{key.text.lower()}")


def _table_items(view: ProjectView, text: str, span: Span) -> Iterator[Item]:
    for match in re.finditer(r"(?:\bWITH|,)\s*(\w+)\s+AS\s*\(", text, re.IGNORECASE):
        yield Item(match[1], ItemKind.ALIAS, span, "CTE", 1)
    for name, model in view.project.models.items():
        yield Item(name, ItemKind.MODEL, span, str(model.kind), 2)


def _column_items(view: ProjectView, path: str, text: str, span: Span, qualifier: str) -> Iterator[Item]:
    sources = _sources_at(view, path, text, span)
    yielded_names: set[str] = set()
    for alias, (table, columns) in sources.items():
        if qualifier in ("", alias):
            types = view.types(table) if table else {}
            for column in columns or ():
                if column not in yielded_names:
                    yielded_names.add(column)
                    yield Item(column, ItemKind.COLUMN, span, f"{types.get(column, '')} of {table or alias}".strip(), 1)
    if not qualifier:
        yield from (Item(alias, ItemKind.ALIAS, span, "table", 2) for alias in sources)


def _sources_at(view: ProjectView, path: str, text: str, span: Span) -> dict[str, tuple[str, tuple[str, ...] | None]]:
    """Return alias -> table and columns of the sources at a place; from the text alone if it cannot be parsed."""
    whole = text[: span.start] + CURSOR + text[span.end :]
    file = read_sql_file(path, whole, view.project.defaults.dialect)
    names = names_of(file, "", view.columns, view.project.catalogs.default)
    place = next((name.span.start for name in names.names if name.name == CURSOR), span.start)
    around = [scope for scope in names.scopes if scope.span.holds(place)]
    if around:
        scope = min(around, key=lambda scope: scope.span.end - scope.span.start)
        return {alias: (owner.table, columns) for alias, (owner, columns) in scope.sources.items()}
    sources: dict[str, tuple[str, tuple[str, ...] | None]] = {}
    for match in _READS.finditer(text):
        table, alias = match[1].lower(), match[2] or ""
        alias = alias.lower() if alias and alias.upper() not in _NO_ALIAS else table.rpartition(".")[2]
        sources[alias] = table, view.columns(table)
    return sources


def _macro_items(view: ProjectView, span: Span) -> Iterator[Item]:
    for name in sorted(DATES):
        yield Item(f"@{name}", ItemKind.MACRO, span, "date of the interval", 2)
    for name in sorted(BUILT_IN):
        yield Item(f"@{name.upper()}", ItemKind.MACRO, span, "built-in macro", 3)
    for name in sorted(view.project.code.names):
        yield Item(f"@{name}", ItemKind.MACRO, span, "macro of the project", 1)
    for name in sorted(view.project.defaults.variables):
        yield Item(f"@{name}", ItemKind.MACRO, span, "variable", 1)


def _function_items(span: Span) -> Iterator[Item]:
    signatures = _function_signatures()
    for name in sorted(OPEN - OPERATORS):
        if name.isidentifier():
            yield Item(name, ItemKind.FUNCTION, span, signatures.get(name, "function"), 6)


@cache
def _function_signatures() -> dict[str, str]:
    """Return function -> its name and required arguments, as sqlglot has them."""
    signatures: dict[str, str] = {}
    for name, function in exp.FUNCTION_BY_NAME.items():
        if name.lower() in OPEN:
            required = ["expr" if key == "this" else key for key, needed in function.arg_types.items() if needed]
            ellipsis = ["..."] if len(required) < len(function.arg_types) else []
            signatures[name.lower()] = f"{name.lower()}({', '.join(required + ellipsis)})"
    return signatures
