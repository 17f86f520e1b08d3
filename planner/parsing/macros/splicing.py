"""Put physical names and dates into the text of a query by position; all other text stays unchanged."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.naming import SESSION_CATALOG, qualify_table
from mergeplan.planner.parsing.macros.expand import is_a_name, spark_tree
from mergeplan.planner.parsing.sql.names import name_tables
from mergeplan.planner.parsing.sql.spark_text import spark_text
from mergeplan.planner.parsing.sql.tokens import SourceText, closing, tokenize

THIS = "@this_model"
# names that Spark does not accept as the unquoted alias of a table
_FROM_WORDS = frozenset(
    """anti cross except exists full inner intersect join lateral left minus natural on right semi union
    using""".split()
)


@dataclass(frozen=True, order=True)
class Splice:
    """A replacement of the text from `start` up to `end`."""

    start: int
    end: int
    text: str


class Unplaced(Exception):
    """A name without a known place in the text."""


def is_placed(tree: exp.Expr) -> bool:
    try:
        list(_list_places(tree))
    except Unplaced:
        return False
    return True


def reads_as(text: str, sql: str, temporary: frozenset[str], catalog: str = SESSION_CATALOG) -> bool:
    """Return True if the text is parsed as the query `sql`, with names of this default catalog."""
    tree, source = spark_tree(text).copy(), SourceText("", text, "spark", catalog=catalog)
    name_tables(tree, source, tokenize(source), temporary)
    return spark_text(tree) == sql


def splice_text(text: str, tables: Mapping[str, str], values: Mapping[str, exp.Expr], this: str = "") -> str:
    """Return the text with its tables, `@this_model` and each `@name` that has a value replaced.

    A table is replaced by a name or a query in brackets, and `@this_model` by `this`, a query in brackets. A table that
    is replaced keeps its short name as its alias, so that `schema.table.column` still names a column.
    """
    return apply_splices(text, [*list_splices(text, tables, values), *(_splice_this_model(text, this) if this else ())])


def apply_splices(text: str, changes: list[Splice]) -> str:
    """Return the text with these changes, which do not overlap."""
    out, last = "", 0
    for change in sorted(changes):
        out, last = out + text[last : change.start] + change.text, change.end
    return out + text[last:]


def original_offset(changes: list[Splice], offset: int) -> int:
    moved = 0
    for change in sorted(changes):
        begins = change.start + moved
        if offset < begins:
            break
        if offset < begins + len(change.text):
            return change.start
        moved += len(change.text) - (change.end - change.start)
    return offset - moved


def splice_names(text: str, values: Mapping[str, exp.Expr]) -> str:
    """Return the text with each `@name` of a table or its column replaced; raise ValueError for a value of no name."""
    changes = []
    for identifier in spark_tree(text).find_all(exp.Identifier):
        if not is_a_name(identifier) or identifier.name[1:] not in values:
            continue
        value, name = values[identifier.name[1:]], identifier.name
        parts = value.parts if isinstance(value, exp.Column) else []
        of_table = isinstance(identifier.parent, exp.Table)
        if not 1 <= len(parts) <= (3 if of_table else 1) or not all(isinstance(part, exp.Identifier) for part in parts):
            raise ValueError(f"`{name}` stands for the name of a {'table' if of_table else 'column'}.")
        changes.append(Splice(*_find_span([identifier]), ".".join(part.sql("spark") for part in parts)))
    return apply_splices(text, changes)


def list_splices(text: str, tables: Mapping[str, str], values: Mapping[str, exp.Expr]) -> list[Splice]:
    tree = spark_tree(text)
    aliases = aliases_of(tree, tables)
    changes = [
        *_splice_tables(text, tree, tables, aliases),
        *_splice_columns(tree, aliases),
        *_splice_values(tree, values),
    ]
    return [*changes, *_splice_hints(text, aliases)]


def short_alias(name: str) -> exp.Identifier:
    """Return a table's short name as its alias, in backticks if Spark would read it as the next part of FROM."""
    return exp.to_identifier(name, quoted=True if name.lower() in _FROM_WORDS else None)


Aliases = Mapping[int, Mapping[str, str]]  # id of a SELECT -> name of a table that it reads -> the alias it gets


def key_of(table: exp.Table) -> str:
    """Return a table's name in lower case as in the query, or '' for a CTE, a table function or a name in a hint."""
    if not table.db or not isinstance(table.this, exp.Identifier):
        return ""
    if _is_in_hint(table):
        return ""
    return qualify_table(table.catalog, table.db, table.name).lower()


def _is_in_hint(table: exp.Table) -> bool:
    return isinstance(table.find_ancestor(exp.Hint, exp.Select), exp.Hint)


def aliases_of(tree: exp.Expr, tables: Mapping[str, str]) -> dict[int, dict[str, str]]:
    """Return the aliases of replaced tables without one: whole names with `__`, since short ones may be equal."""
    references = [(node, key_of(node), node.find_ancestor(exp.Select)) for node in tree.find_all(exp.Table)]
    bare = [reference for reference in references if not reference[0].alias and not _is_in_hint(reference[0])]
    short = Counter((id(select), table.name.lower()) for table, _, select in bare)
    aliases: dict[int, dict[str, str]] = {}
    for table, key, select in bare:
        if tables.get(key, key) != key:
            several = short[id(select), table.name.lower()] > 1
            aliases.setdefault(id(select), {})[key] = key.replace(".", "__") if several else table.name.lower()
    return aliases


def alias_of(column: exp.Column, aliases: Aliases) -> tuple[str, int] | None:
    """Return the nearest SELECT's alias for the first parts of `schema.table.column`, and their number, or None."""
    parts = [part.name.lower() for part in column.parts]
    candidates = [(".".join(parts[0:2]), 2), (".".join(parts[0:3]), 3)]
    if parts[0] == SESSION_CATALOG:
        candidates.append((".".join(parts[1:3]), 3))
    for key, dropped in candidates:
        select = column.find_ancestor(exp.Select) if len(parts) > dropped else None
        while select is not None:
            if key in aliases.get(id(select), {}):
                return aliases[id(select)][key], dropped
            select = select.find_ancestor(exp.Select)
    return None


def _list_places(tree: exp.Expr) -> Iterator[tuple[int, int]]:
    for table in tree.find_all(exp.Table):
        if key_of(table):
            yield _find_span(table.parts)
    for name in tree.find_all(exp.Identifier):
        if name.name.startswith("@") and not name.quoted:
            yield _find_span([name])


def _find_span(parts: list[exp.Expr]) -> tuple[int, int]:
    try:
        return parts[0].meta["start"], parts[-1].meta["end"] + 1
    except KeyError:
        raise Unplaced from None


def _splice_tables(text: str, tree: exp.Expr, tables: Mapping[str, str], aliases: Aliases) -> Iterator[Splice]:
    tokens: list[Token] = []
    for table in tree.find_all(exp.Table):
        key = key_of(table)
        if tables.get(key, key) == key:
            continue
        start, end = _find_span(table.parts)
        quoted_name = ".".join(exp.to_identifier(part).sql("spark") for part in tables[key].split("."))
        physical = tables[key] if tables[key].startswith("(") else quoted_name
        if table.alias:
            yield Splice(start, end, physical)
            continue
        alias = f" AS {short_alias(aliases[id(table.find_ancestor(exp.Select))][key]).sql('spark')}"
        tokens = tokens or tokenize(SourceText("", text, "spark"))
        yield from _splice_with_alias(tokens, (start, end), physical, alias)


def _splice_this_model(text: str, this: str) -> Iterator[Splice]:
    tree, tokens = spark_tree(text), tokenize(SourceText("", text, "spark"))
    for table in tree.find_all(exp.Table):
        if table.name == THIS:
            yield from _splice_with_alias(
                tokens, _find_span(table.parts), this, "" if table.alias else " AS this_model"
            )
    for column in tree.find_all(exp.Column):
        if column.table == THIS:
            yield Splice(*_find_span(column.parts[:1]), "this_model")


def _splice_with_alias(tokens: list[Token], span: tuple[int, int], query: str, alias: str) -> Iterator[Splice]:
    start, end = span
    behind = _behind_sample(tokens, end) if alias else end
    if behind == end:
        yield Splice(start, end, query + alias)
    else:
        yield Splice(start, end, query)
        yield Splice(behind, behind, alias)


def _behind_sample(tokens: list[Token], end: int) -> int:
    """Return the end of TABLESAMPLE after a table's name, because its alias follows that."""
    index = next((n for n, token in enumerate(tokens) if token.start >= end), len(tokens))
    if index == len(tokens) or tokens[index].token_type is not TokenType.TABLE_SAMPLE:
        return end
    last = closing(tokens, index + 1)
    if last is not None and last + 1 < len(tokens) and tokens[last + 1].text.upper() == "REPEATABLE":
        last = closing(tokens, last + 2)
    return end if last is None else tokens[last].end + 1


def _splice_columns(tree: exp.Expr, aliases: Aliases) -> Iterator[Splice]:
    for column in tree.find_all(exp.Column) if aliases else ():
        if match := alias_of(column, aliases):
            alias, dropped = match
            start, end = _find_span(column.parts[:dropped])
            yield Splice(start, end, short_alias(alias).sql("spark"))


def _splice_values(tree: exp.Expr, values: Mapping[str, exp.Expr]) -> Iterator[Splice]:
    for name in tree.find_all(exp.Identifier):
        value = values.get(name.name[1:]) if name.name.startswith("@") and not name.quoted else None
        if value is not None:
            sql = spark_text(value)
            alone = isinstance(value, (exp.Literal, exp.Cast)) and not sql.startswith("-")
            yield Splice(*_find_span([name]), sql if alone else f"({sql})")


def _splice_hints(text: str, aliases: Aliases) -> Iterator[Splice]:
    """Yield the changes for `BROADCAST(schema.table)`: Spark finds the table only by its alias."""
    alias_by_key = {key: alias for table_aliases in aliases.values() for key, alias in table_aliases.items()}
    for hint in tokenize(SourceText("", text, "spark")) if alias_by_key and "/*+" in text else ():
        if hint.token_type is TokenType.HINT:
            for name in re.finditer(r"(?<!\w)\w+(?:\.\w+){1,2}", text[hint.start : hint.end + 1]):
                if alias := alias_by_key.get(name[0].lower()):
                    yield Splice(hint.start + name.start(), hint.start + name.end(), alias)
