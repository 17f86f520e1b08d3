"""The `key value, key value` list of a MODEL or AUDIT block, and typed readers of one value."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.errors import TokenError as SqlTokenError
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.model.checks import AuditCall
from mergeplan.planner.model.model import Column
from mergeplan.planner.model.schedule import SignalCall
from mergeplan.planner.naming import ColumnName, quote_field, quote_fields
from mergeplan.planner.parsing.sql.tokens import SourceText, Tokens, closing, did_you_mean, parse_tokens, split_commas

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
TRANSFORMS = ("years", "months", "days", "hours", "year", "month", "day", "hour", "date", "bucket", "truncate")
_TEXTS = (TokenType.STRING, TokenType.IDENTIFIER)
_CALL = re.compile(r"\w+\(.*\)", re.DOTALL)


@dataclass(frozen=True)
class Property:
    """One key of a block and the tokens of its value."""

    source: SourceText
    at: Token
    value: tuple[Token, ...]

    @property
    def key(self) -> str:
        return self.at.text.lower()

    @property
    def place(self) -> Place:
        return self.source.place(self.at)

    @property
    def text(self) -> str:
        """The value as written; a quoted string without its quotes."""
        if self.value and all(token.token_type is TokenType.STRING for token in self.value):
            # `'it''s'` is two strings to some dialects
            return "'".join(token.text for token in self.value)
        return self.value[0].text if len(self.value) == 1 else self.source.slice(self.value)

    def error(self, message: str, hint: str = "", token: Token | None = None) -> ProjectError:
        """Return an error at the value, or at the key if there is no value."""
        return self.source.error(token or (self.value[0] if self.value else self.at), message, hint)


def block(source: SourceText, tokens: Tokens) -> list[Property]:
    """Return the properties of `MODEL (...)`, with the bracket as tokens[1]; raise ProjectError if it is broken."""
    word = tokens[0].text.upper()
    end = closing(tokens, 1)
    if end is None:
        raise source.error(tokens[0], f"`{word} (` is never closed: a `)` or a `;` is missing.")
    if end + 1 < len(tokens):
        raise source.error(tokens[end + 1], f"`{word} (...)` must be followed by a semicolon.")
    return read_properties(source, tokens[2:end])


def read_properties(source: SourceText, tokens: Tokens, *, allow_quotes: bool = False) -> list[Property]:
    """Return `key value, key value` as properties; raise ProjectError for a key without name or value, or given twice.

    With `allow_quotes`, keys may be quoted and then contain any text.
    """
    block_properties: dict[str, Property] = {}
    for part in split_commas(tokens):
        if not part:
            raise source.error(tokens[0], "There are two commas in a row here.")
        is_text = part[0].token_type in _TEXTS
        if not (allow_quotes and part[0].text if is_text else _IDENTIFIER.fullmatch(part[0].text)):
            raise source.error(part[0], f"`{part[0].text}` is not expected here: a key is.")
        if len(part) > 1 and part[1].token_type is TokenType.COLON:
            raise source.error(part[1], f"`{part[0].text}` is followed by a colon.", "Write the value behind a space.")
        value = part[2:] if len(part) > 1 and part[1].token_type in (TokenType.EQ, TokenType.COLON_EQ) else part[1:]
        prop = Property(source, part[0], tuple(value))
        if not value:
            owner = next(reversed(block_properties), "")
            hint = f"Several values of `{owner}` stand in brackets: `{owner} (a, b)`." if owner else ""
            raise source.error(part[0], f"`{prop.key}` has no value.", hint)
        if prop.key in block_properties:
            raise source.error(part[0], f"`{prop.key}` is given twice.")
        block_properties[prop.key] = prop
    return list(block_properties.values())


def word(prop: Property) -> str:
    """Return a single word or quoted string; raise ProjectError for more."""
    if len(prop.value) > 1 and not all(token.token_type is TokenType.STRING for token in prop.value):
        message = f"`{prop.value[1].text}` is not expected in the value of `{prop.key}`."
        raise prop.error(message, "Is a comma missing before it?", prop.value[1])
    return prop.text


def name(prop: Property) -> str:
    """Return a dotted name in lower case: `schema.table`."""
    return _parse_dotted_name(prop, prop.value)


def read_name_list(prop: Property) -> tuple[str, ...]:
    """Return `a`, `a.b`, `(a, b)` or `['a', 'b']` as names in lower case."""
    return tuple(_parse_dotted_name(prop, part) for part in list_items(prop))


def column_names(prop: Property) -> tuple[ColumnName, ...]:
    """Return `a`, `(a, b)` or `['a', 'b']` as names of columns."""
    return tuple(_column_name(prop, part) for part in list_items(prop))


def _column_name(prop: Property, part: Tokens) -> ColumnName:
    is_quoted = len(part) == 1 and part[0].token_type in _TEXTS and part[0].text
    return ColumnName(part[0].text if is_quoted else _parse_dotted_name(prop, part))


def read_grains(prop: Property) -> tuple[str, ...]:
    """Return all columns of all grains in `(a)`, `((a, b), c)` or `(a AS b)`; together they identify rows too."""
    grain_columns: dict[str, None] = {}
    for part in list_items(prop):
        inner = split_commas(part[1:-1]) if part and part[0].token_type is TokenType.L_PAREN else [part]
        for column in inner:
            is_alias = (token.text.upper() == "AS" and token.token_type not in _TEXTS for token in column)
            alias = next((at for at, begins in enumerate(is_alias) if begins), len(column))
            alone = column[0].text.split() if len(column) == 1 and column[0].token_type is TokenType.STRING else []
            if len(alone) == 3 and alone[1].upper() == "AS":  # 'id AS order_id'
                grain_columns[alone[0].lower()] = None
                continue
            grain_columns[_column_name(prop, column[:alias])] = None
    return tuple(grain_columns)


def words(prop: Property) -> tuple[str, ...]:
    """Return `a`, `(a, 'B c')` or `[a]` as strings, as written."""
    parts = list_items(prop)
    if any(len(part) != 1 for part in parts):
        raise prop.error(f"`{prop.key}` takes names or quoted strings, separated by commas.")
    return tuple(part[0].text for part in parts)


def rule_name(text: str) -> str:
    """Return the canonical name of a linter rule: `NoSelectStar`, `no_select_star` and `noselectstar` are one."""
    return text.strip().lower().replace("_", "").replace("-", "")


def read_integer(prop: Property, least: int) -> int:
    if len(prop.value) == 1 and prop.value[0].text.isdecimal() and int(prop.value[0].text) >= least:
        return int(prop.value[0].text)
    raise prop.error(f"`{prop.key}` must be a whole number of at least {least}, not `{prop.text}`.")


def read_boolean(prop: Property) -> bool:
    if prop.text.lower() in ("true", "false"):
        return prop.text.lower() == "true"
    raise prop.error(f"`{prop.key}` must be true or false, not `{prop.text}`.")


def read_names(options: Mapping[str, Property], fields: Mapping[str, str]) -> dict[str, Any]:
    """Return field -> name of a column in lower case, for each key of `fields` that is set."""
    return {field: word(options[key]).lower() for key, field in fields.items() if key in options}


def read_value(prop: Property, default: object) -> Any:  # of the field's type, which mypy cannot see by name
    """Return the value of a property whose row has this default, as the type of that says."""
    if isinstance(default, bool):
        return read_boolean(prop)
    if isinstance(default, int):
        return read_integer(prop, default)
    return word(prop) if isinstance(default, str) else words(prop)


def read_columns(prop: Property) -> tuple[Column, ...]:
    """Return `(id INT, price DECIMAL(10, 2))` as columns with Spark types; raise ProjectError for an unknown type."""
    columns_by_name: dict[str, Column] = {}
    parts = split_commas(bracket_tokens(prop), True)
    if not parts or not all(parts):
        raise prop.error(f"`{prop.key}` is empty, or has two commas in a row.")
    for part in parts:
        column = part[0].text.lower()
        if len(part) < 2:
            raise prop.error(f"Column `{column}` has no type.", "Write `columns (id INT, name STRING)`.", part[0])
        if column in columns_by_name:
            raise prop.error(f"Column `{column}` is given twice.", token=part[0])
        text = prop.source.slice(part[1:])
        columns_by_name[column] = Column(column, spark_type(text, prop.source.dialect, prop.source.place(part[1])))
    return tuple(columns_by_name.values())


def read_descriptions(parent: Property) -> tuple[tuple[str, str], ...]:
    """Return `(id = 'the key', name = 'a word')` as (column, text) pairs."""
    return tuple(
        (prop.key, prop.text) for prop in read_properties(parent.source, bracket_tokens(parent), allow_quotes=True)
    )


def audit_calls(prop: Property) -> tuple[AuditCall, ...]:
    """Return `(a, b(x := 1))` as calls with their arguments in Spark SQL."""
    return tuple(_audit_call(prop, part) for part in list_items(prop))


def read_pairs(parent: Property) -> tuple[tuple[str, str], ...]:
    """Return `(x = 1, y = (a, b))` as (name, Spark SQL) pairs."""
    return tuple((prop.key, _value_sql(prop)) for prop in read_properties(parent.source, bracket_tokens(parent)))


def read_literals(parent: Property) -> tuple[tuple[str, str], ...]:
    """Return `(x = 'a', y = 1)` as sorted (name, text) pairs; raise ProjectError for a value that is no literal."""
    entries = []
    for prop in read_properties(parent.source, bracket_tokens(parent)):
        if len(prop.value) != 1:
            raise prop.error(f"`{prop.text}` is not a string, a number, or true or false.")
        entries.append((prop.key, prop.text))
    return tuple(sorted(entries))


def read_expressions(prop: Property) -> tuple[str, ...]:
    """Return `a`, `(a, days(ts))` or `[a, 'b']` as Spark SQL, plain columns in lower case."""
    return tuple(_read_expression(prop, part) for part in list_items(prop))


def _read_expression(prop: Property, part: Tokens) -> str:
    """Return a column as its `key`, or an expression as it is written; the spelling decides between the two."""
    if not part:
        raise prop.error(f"`{prop.key}` is empty, or has two commas in a row.")
    if len(part) == 1:
        is_call = part[0].token_type is TokenType.STRING and _CALL.fullmatch(part[0].text)
        is_name = part[0].token_type in _TEXTS and part[0].text and not is_call
        return ColumnName(part[0].text).key if is_name else part[0].text.lower()
    if part[1].token_type is TokenType.L_PAREN and closing(part, 1) == len(part) - 1:
        arguments = [spark_sql(prop.source, argument) for argument in split_commas(part[2:-1])]
        if part[0].text.lower() in TRANSFORMS:
            return f"{part[0].text.lower()}({', '.join(arguments)})"
    text = spark_sql(prop.source, part)
    return f"({text})" if ColumnName.parse(text) else text  # `current_date()` is written without its brackets


def table_properties(parent: Property) -> tuple[tuple[str, str], ...]:
    """Return the properties of a model's table; raise ProjectError for locations and for Spark's own properties."""
    for prop in read_properties(parent.source, bracket_tokens(parent)):
        key = prop.key.lower()
        if key in ("path", "location", "external", "provider", "owner") or key.startswith(("spark.sql.", "mergeplan.")):
            raise prop.error(f"`{prop.key}` as a property of a table is not supported.")
    return read_literals(parent)


def view_properties(parent: Property) -> tuple[tuple[str, str], ...]:
    """Return the properties of a model's views; raise ProjectError for those that Spark or mergeplan sets itself."""
    entries = read_literals(parent)
    for prop in read_properties(parent.source, bracket_tokens(parent)):
        if prop.key in ("comment", "creatable_type") or prop.key.startswith(("view.", "mergeplan.")):
            raise prop.error(f"`{prop.key}` as a property of a view is not supported.")
    return entries


def spark_sql(source: SourceText, tokens: Tokens) -> str:
    return parse_tokens(source, tokens, "The value").sql("spark", comments=False)


def spark_type(text: str, dialect: str, place: Place) -> str:
    """Return a column type as Spark writes it, like `decimal(10,2)`; raise ProjectError for an unknown type."""
    type_text = _spark_type(text, dialect)
    if type_text is None:
        raise ProjectError(f"`{text}` is not a type of {dialect or 'SQL'}.", place=place)
    return type_text


@lru_cache(maxsize=4096)  # a project has few types and many columns
def _spark_type(text: str, dialect: str) -> str | None:
    try:
        built = exp.DataType.build(quote_fields(text) if dialect == "spark" else text, dialect=dialect)
    except (ParseError, SqlTokenError, ValueError):
        built = None
    if not isinstance(built, exp.DataType) or built.this is exp.DType.USERDEFINED:
        return None
    return _type_text(built)


def check_key(prop: Property, known_keys: Collection[str], later: Collection[str], block: str) -> Property:
    """Return the property if its key is known; raise ProjectError if it is unknown or not supported yet."""
    if prop.key in later:
        raise prop.source.error(prop.at, f"`{prop.key}` in {block} is not supported yet.")
    if prop.key not in known_keys:
        hint = did_you_mean(prop.key, known_keys)
        raise prop.source.error(prop.at, f"`{prop.at.text}` is not a key of {block}.", hint)
    return prop


def read_settings(
    props: list[Property], known_keys: Collection[str], later: Collection[str], block: str
) -> dict[str, Property]:
    """Return the properties by key; raise ProjectError as `check_key` does."""
    return {prop.key: check_key(prop, known_keys, later, block) for prop in props}


def _type_text(data_type: exp.DataType) -> str:
    if data_type.this is exp.DType.STRUCT and data_type.expressions:
        columns = (field for field in data_type.expressions if isinstance(field, exp.ColumnDef))
        fields = (f"{quote_field(field.name)}:{_type_text(field.args['kind'])}" for field in columns)
        return f"struct<{','.join(fields)}>"
    if data_type.this in (exp.DType.ARRAY, exp.DType.MAP) and data_type.expressions:
        return f"{data_type.this.value.lower()}<{','.join(_type_text(inner) for inner in data_type.expressions)}>"
    return data_type.sql("spark").lower().replace(", ", ",")


def _audit_call(prop: Property, part: Tokens) -> AuditCall:
    if len(part) == 1:
        return AuditCall(part[0].text.lower())
    if part[1].token_type is not TokenType.L_PAREN or closing(part, 1) != len(part) - 1:
        raise prop.error("An audit is written `name` or `name(argument := value)`.", token=part[1])
    arguments = {argument.key: argument for argument in read_properties(prop.source, part[2:-1], allow_quotes=True)}
    blocking = arguments.pop("blocking", None)
    return AuditCall(
        part[0].text.lower(),
        tuple((key, _value_sql(argument)) for key, argument in arguments.items()),
        None if blocking is None else read_boolean(blocking),
    )


def _value_sql(prop: Property) -> str:
    """Return a value in Spark SQL; the name of a table, which an audit may read, loses the default catalog."""
    value, kinds = prop.value, [token.token_type for token in prop.value]
    dotted = len(value) == 5 and kinds[1] == kinds[3] == TokenType.DOT
    if dotted and value[0].text.lower() == prop.source.catalog:
        value = value[2:]
    return spark_sql(prop.source, value)


def list_items(prop: Property) -> list[list[Token]]:
    """Return the items of a list in brackets, each as its tokens, or the value as the only item."""
    value = prop.value[1:] if len(prop.value) > 1 and prop.value[0].text.upper() == "ARRAY" else prop.value
    first = value[0].token_type
    if first in (TokenType.L_PAREN, TokenType.L_BRACKET) and closing(value, 0) == len(value) - 1:
        return split_commas(value[1:-1])
    return [list(prop.value)]


def bracket_tokens(prop: Property) -> Tokens:
    """Return the tokens between the brackets that must enclose the whole value."""
    if prop.value[0].token_type is not TokenType.L_PAREN or closing(prop.value, 0) != len(prop.value) - 1:
        raise prop.error(f"`{prop.key}` needs a value in brackets: `{prop.key} (...)`.")
    return prop.value[1:-1]


def _parse_dotted_name(prop: Property, part: Tokens) -> str:
    dots, identifiers = part[1::2], part[::2]
    proper = len(part) % 2 == 1 and all(token.token_type is TokenType.DOT for token in dots)
    if not proper or not all(re.fullmatch(r"[\w.]+", token.text) for token in identifiers):
        odd_tokens = [token for token in dots if token.token_type is not TokenType.DOT]
        odd_tokens += [token for token in identifiers if not re.fullmatch(r"[\w.]+", token.text)]
        odd = odd_tokens[0] if odd_tokens else part[0] if part else prop.at
        is_word = re.fullmatch(r"\w+", odd.text)
        hint = "Is a comma missing?" if is_word else "A name has only letters, digits, underscores and dots."
        raise prop.error(f"`{odd.text}` is not expected in the value of `{prop.key}`.", hint, odd)
    return ".".join(token.text for token in identifiers).lower()


def signal_calls(prop: Property) -> tuple[SignalCall, ...]:
    """Return `(a, b(x := 1))` as calls with arguments as JSON; raise ProjectError for a value that is no literal."""
    return tuple(_read_signal(prop, part) for part in list_items(prop) if part)


def _read_signal(prop: Property, part: Tokens) -> SignalCall:
    if len(part) == 1:
        return SignalCall(part[0].text.lower())
    if part[1].token_type is not TokenType.L_PAREN or closing(part, 1) != len(part) - 1:
        raise prop.error("A signal is written `name` or `name(argument := value)`.", token=part[1])
    arguments = (
        (argument.key, json.dumps(_literal_value(argument, parse_tokens(argument.source, argument.value, "The value"))))
        for argument in read_properties(prop.source, part[2:-1])
    )
    return SignalCall(part[0].text.lower(), tuple(arguments))


def _literal_value(prop: Property, tree: exp.Expr) -> object:
    match tree:
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(tree.this)
        case exp.Literal():
            return tree.this if tree.is_string else _literal_number(tree.this)
        case exp.Neg(this=exp.Literal(is_string=False)):
            return -_literal_number(tree.this.this)
        case exp.Array() | exp.Tuple():
            return [_literal_value(prop, element) for element in tree.expressions]
        case exp.Paren():
            return _literal_value(prop, tree.this)
    raise prop.error(f"`{prop.text}` is not a string, a number, true, false, NULL or a list of these.")


def _literal_number(text: str) -> int | float:
    return int(text) if text.isdecimal() else float(text)
