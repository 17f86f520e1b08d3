"""Walk over a file's tokens and replace each macro by its expansion.

A macro gets its arguments as tokens, or as trees if it needs them. It returns pieces: none, one, or several that are
joined by commas. Its result may contain macros again.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.parsing.macros.evaluate import Unknowable, Value, value_of
from mergeplan.planner.parsing.sql import tokens as sql_tokens
from mergeplan.planner.parsing.sql.macro_scope import DATES, MacroScope
from mergeplan.planner.parsing.sql.token_lists import (
    Piece,
    add_brackets,
    fuse_macros,
    join_pieces,
    make_token,
    text_of,
    tokens_of,
    value_tokens,
)
from mergeplan.planner.parsing.sql.tokens import CLOSE, OPEN, SourceText, Tokens
from mergeplan.planner.parsing.sql.user_macros import ColumnsWanted, MacroCall

DEEPEST = 50  # macros inside the results of macros
LATER = ("resolve_template", "column_type", "physical_location", "insert_seed")  # SQLMesh has them
CALLS = 50_000  # of macros in one file
MOST = 200_000  # tokens that one statement may grow to
_TEMPLATE = re.compile(r"@\{(\w+)\}")
_IN_TEXT = re.compile(r"@\{(\w+)\}|@(\w+)")
_AT = re.compile(r"@(\w+)")
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


@dataclass(frozen=True)
class Lambda:
    """`x -> x + 1` or `(x, y) -> x AND y`: names in lower case, and the body."""

    names: tuple[str, ...]
    body: Piece


@dataclass(frozen=True)
class Invocation:
    """One call of a macro: its arguments as they are written, by position and by name."""

    name: str  # as written, without the @
    at: Token
    last: Token
    arguments: tuple[Piece, ...]
    keywords: Mapping[str, Piece]


BuiltIn = Callable[["Expander", Invocation], list[Piece]]


@dataclass
class Expander:
    """The expansion of one file: `names` are defined by `@DEF`; built-in macros by name in lower case."""

    source: SourceText
    scope: MacroScope
    built_in: Mapping[str, BuiltIn]
    names: dict[str, Piece | Lambda] = field(default_factory=dict)
    bound: dict[str, Piece] = field(default_factory=dict)  # the values of the current lambda's names
    depth: int = 0
    spent: list[int] = field(default_factory=lambda: [0])  # calls so far

    def run(self, tokens: Tokens) -> Piece:
        source_tokens = fuse_macros(tokens)
        out: Piece = []
        index = 0
        while index < len(source_tokens):
            is_plain = not self.bound and "@" not in source_tokens[index].text
            if not is_plain and self._drops_clause(source_tokens, index, out):
                index = self._clause_end(source_tokens, index)
                continue
            pieces, end = (None, index + 1) if is_plain else self._expand_token(source_tokens, index, out)
            if pieces is None:
                out.append(source_tokens[index])
            else:
                end = self._append_pieces(out, pieces, source_tokens, index, end)
            if len(out) > MOST:
                raise self.source.error(source_tokens[index], f"The macros here expand to more than {MOST} tokens.")
            index = end
        return out

    def statements(self, tokens: Tokens) -> list[Piece]:
        """Return the expansion of a statement; a macro that is the whole statement may return none, or several."""
        source_tokens = fuse_macros(tokens)
        if source_tokens and source_tokens[0].token_type is TokenType.VAR and source_tokens[0].text.startswith("@"):
            pieces, end = self._expand_token(source_tokens, 0, [])
            if pieces is not None and end == len(source_tokens):
                return [piece for piece in pieces if piece]
        expansion = self.run(source_tokens)
        return [expansion] if expansion else []

    def _expand_token(self, tokens: Piece, index: int, out: Piece) -> tuple[list[Piece] | None, int]:
        """Return the expansion of a token with its arguments, None if it stays, and the index after it."""
        token = tokens[index]
        called = index + 1 < len(tokens) and tokens[index + 1].token_type is TokenType.L_PAREN
        if token.token_type is TokenType.PARAMETER and token.text.startswith("@'"):
            return [
                [make_token(TokenType.STRING, self.fill_template(token.text[2:], token, _IN_TEXT), token, token)]
            ], index + 1
        if token.token_type is TokenType.IDENTIFIER and "@" in token.text:
            token = make_token(TokenType.IDENTIFIER, self._fill_name(token.text, token), token, token)
            if "@{" not in token.text:
                return [[token]], index + 1
        if token.token_type in _NAMES and "@{" in token.text:
            quoted = token.token_type is TokenType.IDENTIFIER
            text = self.fill_template(token.text, token)
            kind = TokenType.IDENTIFIER if quoted or not re.fullmatch(r"\w+", text) else TokenType.VAR
            parts = (
                [make_token(kind, text, token, token)] if quoted or "." not in text else self.cut(text, token, token)
            )
            return [parts], index + 1
        if token.token_type is TokenType.VAR and token.text.startswith("@") and len(token.text) > 1:
            return self._expand_call(tokens, index) if called else self._expand_name(
                token, called
            ), index + 1 if not called else (self._find_closing(tokens, index) + 1)
        value = self.bound.get(token.text.lower()) if _is_name(token) else None
        if value is None or called or (out and out[-1].token_type is TokenType.DOT):
            return None, index + 1
        if out and out[-1].token_type is TokenType.ALIAS and len(value) == 1 and value[0].token_type in _TEXTUAL:
            value = [make_token(TokenType.VAR, value[0].text, value[0], value[0])]  # of a string in place of an alias
        return [value], index + 1

    def _find_closing(self, tokens: Piece, index: int) -> int:
        end = sql_tokens.closing(tokens, index + 1)
        if end is None:
            raise self.source.error(tokens[index], f"`{tokens[index].text}(` is never closed.")
        return end

    def _append_pieces(self, out: Piece, pieces: list[Piece], tokens: Piece, index: int, end: int) -> int:
        """Append pieces to `out`; if there are none, remove the adjacent comma, AND or WHERE too."""
        following = tokens[end] if end < len(tokens) else None
        pieces = [piece for piece in pieces if piece]
        if pieces:
            previous = out[-1] if out else None
            alone = [add_brackets(piece, previous, following) for piece in pieces] if len(pieces) == 1 else pieces
            out += join_pieces(alone, tokens[index], tokens[end - 1])
            return end
        last = out[-1].token_type if out else None
        follows = following.token_type if following else None
        if last in (TokenType.COMMA, TokenType.AND, TokenType.OR):
            out.pop()
        elif follows is TokenType.COMMA or (last in _FILTERS and follows in (TokenType.AND, TokenType.OR)):
            return end + 1
        elif last in _FILTERS:
            out.pop()
        return end

    # Names

    def _expand_name(self, token: Token, has_brackets: bool) -> list[Piece]:
        key = _name_key(token.text[1:])
        tokens = self.lookup_name(key, token)
        if tokens is not None:
            return [tokens]
        if key in DATES or key in self.scope.stays or (self.scope.any_name and not has_brackets):
            return [[make_token(TokenType.VAR, f"@{key}", token, token)]]
        if key in self.built_in or key in self.scope.macros.names:
            return self.call(Invocation(token.text[1:], token, token, (), {}))
        raise self.unknown(token, token.text[1:])

    def lookup_name(self, key: str, token: Token) -> Piece | None:
        if key in self.bound:
            return self.bound[key]
        local = self.names.get(key)
        if isinstance(local, Lambda):
            raise self.source.error(token, f"`@{key}` is a macro: call it with `@{key}(...)`.")
        if local is not None:
            return local
        if key in self.scope.blueprint:
            return list(self.scope.blueprint[key])
        try:
            return value_tokens(self.scope.variable(key), self.source.dialect, token, token)
        except KeyError:
            return None

    def unknown(self, token: Token, name: str) -> ProjectError:
        if name.lower() in LATER:
            return self.source.error(token, f"The macro `@{name}` is not supported.")
        candidates = {f"@{candidate}" for candidate in (*self.scope.variables, *self.scope.blueprint, *self.names)}
        candidates |= {f"@{candidate}" for candidate in self.scope.macros.names}
        near = sql_tokens.did_you_mean(
            f"@{name}", candidates | {f"@{candidate}" for candidate in (*DATES, *self.scope.names(), *self.built_in)}, 0
        )
        if near.startswith("Did you mean"):
            return self.source.error(token, f"There is no macro or variable `@{name}`.", near)
        if files := self.scope.macros.unavailable:
            names = ", ".join(f"`{file}`" for file in files)
            near = f"It may be defined in {names}, which cannot be imported: fix that first."
            return self.source.error(token, f"There is no macro or variable `@{name}`.", near)
        return self.source.error(
            token, f"There is no macro or variable `@{name}`.", sql_tokens.did_you_mean(f"@{name}", candidates, most=0)
        )

    def fill_template(self, text: str, token: Token, pattern: re.Pattern[str] = _TEMPLATE) -> str:
        """Return a text with each `@{name}` replaced; raise ProjectError for a name without a known value."""

        def value(match: re.Match[str]) -> str:
            name = next(group for group in match.groups() if group)
            tokens = self.lookup_name(_name_key(name), token)
            if tokens is None and _name_key(name) in DATES:
                raise self.source.error(
                    token, f"`@{{{name}}}` is known only when the model runs, not when it is loaded."
                )
            if tokens is None:
                raise self.unknown(token, name)
            return tokens[0].text if len(tokens) == 1 else text_of(self.source, tokens)

        return pattern.sub(value, text)

    def _fill_name(self, text: str, token: Token) -> str:
        """Return a quoted name with each known `@name` replaced; any other may be part of a column's name."""

        def value(match: re.Match[str]) -> str:
            tokens = self.lookup_name(_name_key(match[1]), token)
            return match[0] if tokens is None else text_of(self.source, tokens) if len(tokens) > 1 else tokens[0].text

        return _AT.sub(value, text)

    # Calls

    def _expand_call(self, tokens: Piece, index: int) -> list[Piece]:
        end = self._find_closing(tokens, index)
        arguments: list[Piece] = []
        keywords: dict[str, Piece] = {}
        for part in sql_tokens.split_commas(tokens[index + 2 : end]):
            if len(part) > 2 and part[1].token_type is TokenType.COLON_EQ:
                keywords[part[0].text.lower()] = part[2:]
            elif keywords:
                raise self.source.error(
                    tokens[index], f"`{tokens[index].text}`: name this argument too, or put it first."
                )
            else:
                arguments.append(part)
        return self.call(Invocation(tokens[index].text[1:], tokens[index], tokens[end], tuple(arguments), keywords))

    def call(self, call: Invocation) -> list[Piece]:
        """Return the expansion of a call; raise ProjectError for an unknown macro or a wrong call."""
        key = call.name.lower()
        if self.depth >= DEEPEST:
            raise self.source.error(call.at, f"`@{call.name}` is nested {DEEPEST} macros deep: does it call itself?")
        self.spent[0] += 1
        if self.spent[0] > CALLS:
            raise self.source.error(call.at, f"The macros of this file call each other more than {CALLS} times.")
        self.depth += 1
        try:
            local = self.names.get(key)
            if isinstance(local, Lambda):
                return [self.apply_lambda(local, call, [self.run(argument) for argument in call.arguments])]
            if key in self.scope.macros.names:
                return self._call_project_macro(call)
            if key in self.built_in:
                return self.built_in[key](self, call)
        finally:
            self.depth -= 1
        if not call.arguments and (tokens := self.lookup_name(key, call.at)):
            return [tokens]
        raise self.unknown(call.at, call.name)

    def _call_project_macro(self, call: Invocation) -> list[Piece]:
        texts = tuple(text_of(self.source, self.run(argument)) for argument in call.arguments)
        keywords = tuple((key, text_of(self.source, self.run(argument))) for key, argument in call.keywords.items())
        local_names = {**self.scope.blueprint, **self.names}
        texts_of = {k: text_of(self.source, value) for k, value in local_names.items() if not isinstance(value, Lambda)}
        variables = {**self.scope.variables, **texts_of}
        columns_by_table = {}
        for text in texts:
            name = text.strip("'\"`").lower()
            if re.fullmatch(r"[\w]+\.[\w]+", name) and (columns := self.scope.columns(name)):
                columns_by_table[name] = tuple(columns.items())
        macro_call = MacroCall(
            call.name.lower(),
            texts,
            keywords,
            dialect=self.source.dialect,
            model=self.scope.model,
            variables=variables,
            gateway=self.scope.gateway,
            columns=columns_by_table,
            place=self.source.place(call.at),
        )
        results = self._call_with_columns(macro_call)
        return [self.run(self.cut(text, call.at, call.last)) for text in results]

    def _call_with_columns(self, call: MacroCall) -> tuple[str, ...]:
        while True:
            try:
                return self.scope.macros.call(call)
            except ColumnsWanted as wanted:
                columns = self.scope.columns(wanted.table)
                if not columns:
                    raise
                call = replace(call, columns={**call.columns, wanted.table: tuple(columns.items())})

    def cut(self, text: str, first: Token, last: Token) -> Piece:
        try:
            return tokens_of(text, self.source.dialect, first, last)
        except ValueError as error:
            raise self.source.error(first, f"The macro's result is not SQL: {error}") from None

    def apply_lambda(self, function: Lambda, call: Invocation, values: list[Piece]) -> Piece:
        if len(values) != len(function.names):
            names = ", ".join(function.names)
            raise self.source.error(call.at, f"`@{call.name}` gives {len(values)} values to a function of ({names}).")
        self.spent[0] += 1
        outer = self.bound
        self.bound = {**outer, **dict(zip(function.names, values, strict=True))}
        try:
            return self.run(function.body)
        finally:
            self.bound = outer

    # Helpers for macros

    def items(self, argument: Piece) -> list[Piece]:
        """Return the items of a list in brackets, of a macro that returns several, or the argument as the only one."""
        source_tokens = fuse_macros(argument)
        if source_tokens and source_tokens[0].text.startswith("@") and source_tokens[0].token_type is TokenType.VAR:
            pieces, end = self._expand_token(source_tokens, 0, [])
            if pieces is not None and end == len(source_tokens):
                return [element for piece in pieces for element in _split_items(piece)] if len(pieces) == 1 else pieces
        is_name = len(source_tokens) == 1 and _is_name(source_tokens[0])
        bound = self.bound.get(source_tokens[0].text.lower()) if is_name else None
        listed = _split_items(bound if bound is not None else source_tokens)
        return [self.run(element) for element in listed]

    def function(self, call: Invocation, argument: Piece, names: int) -> Lambda:
        """Return an argument as a function of so many names; raise ProjectError for any other."""
        function = function_of(argument)
        if function is not None and len(function.names) == names:
            return function
        shape = "x -> ..." if names == 1 else "(x, y) -> ..."
        raise self.source.error(argument[0] if argument else call.at, f"`@{call.name}` needs `{shape}` here.")

    def tree(self, argument: Piece, call: Invocation) -> exp.Expr:
        """Return an argument as an expression with its macros replaced; raise ProjectError for an empty one."""
        tokens = self.run(argument)
        if not tokens:
            raise self.source.error(call.at, f"`@{call.name}` has an argument that expands to nothing.")
        return sql_tokens.parse_tokens(self.source, tokens, f"An argument of `@{call.name}`")

    def value(self, argument: Piece, call: Invocation) -> Value:
        """Return the value of an argument; raise ProjectError if it is not known while the file is loaded."""
        tree = self.tree(argument, call)
        try:
            return value_of(tree)
        except Unknowable as error:
            at = argument[0] if argument else call.at
            if any(node.name.lower()[1:] in DATES for node in tree.find_all(exp.Identifier) if "@" in node.name):
                message = f"`@{call.name}` depends on a date, which is known only when the model runs."
                raise self.source.error(at, message, "Compare dates in SQL, outside of macros.") from None
            message = f"`@{call.name}` needs a value that is known when the file is loaded; {error} is not."
            raise self.source.error(at, message) from None

    def pieces(self, call: Invocation, *fragments: exp.Expr | str) -> list[Piece]:
        texts = [
            fragment if isinstance(fragment, str) else fragment.sql(self.source.dialect, comments=False)
            for fragment in fragments
        ]
        return [self.run(self.cut(text, call.at, call.last)) for text in texts]

    # Clauses

    def _drops_clause(self, tokens: Piece, index: int, out: Piece) -> bool:
        """Return True if the clause of `@WHERE(...)` or the like is removed, else replace the macro by its keyword."""
        token = tokens[index]
        word = CLAUSES.get(token.text[1:].upper()) if token.text.startswith("@") else None
        if word is None or index + 1 >= len(tokens) or tokens[index + 1].token_type is not TokenType.L_PAREN:
            return False
        end = self._find_closing(tokens, index)
        call = Invocation(token.text[1:], token, tokens[end], (tokens[index + 2 : end],), {})
        if self.value(call.arguments[0], call):
            tokens[index : end + 1] = self.cut(word, token, tokens[end])
            return False
        while word == "JOIN" and out and out[-1].text.upper() in _JOIN_WORDS:
            out.pop()
        return True

    def _clause_end(self, tokens: Piece, index: int) -> int:
        word, depth = tokens[index].text[1:].upper(), 0
        for at in range(self._find_closing(tokens, index) + 1, len(tokens)):
            token = tokens[at]
            text = token.text.upper()
            begins = text in _CLAUSE_WORDS or text.removeprefix("@") in CLAUSES
            joins = text in ("JOIN", *_JOIN_WORDS, "@JOIN")
            if depth == 0 and (token.token_type in CLOSE or (text in _BEHIND_WITH if word == "WITH" else begins)):
                return at
            if depth == 0 and word == "JOIN" and joins:
                return at
            depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        return len(tokens)


CLAUSES = {
    word.replace(" ", "_"): word for word in ("WITH", "JOIN", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT")
}
_BEHIND_WITH = ("SELECT", "FROM", "VALUES", "TABLE")
_FILTERS = (TokenType.WHERE, TokenType.HAVING, TokenType.QUALIFY)
_TEXTUAL = (TokenType.STRING, TokenType.IDENTIFIER)
_JOIN_WORDS = ("LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS", "SEMI", "ANTI", "NATURAL", "ASOF", "LATERAL")
_CLAUSE_WORDS = ("WHERE", "GROUP BY", "HAVING", "QUALIFY", "WINDOW", "ORDER BY", "SORT BY", "DISTRIBUTE BY",
                 "CLUSTER BY", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT", "MINUS", "FETCH")  # fmt: skip


def function_of(argument: Piece) -> Lambda | None:
    """Return `x -> ...` or `(x, y) -> ...` as a function, or None for anything else."""
    arrow = next((i for i, token in enumerate(argument) if token.token_type is TokenType.ARROW), None)
    if arrow is None:
        return None
    head = argument[:arrow]
    if len(head) > 1 and head[0].token_type is TokenType.L_PAREN and sql_tokens.closing(head, 0) == len(head) - 1:
        head = [token for token in head[1:-1] if token.token_type is not TokenType.COMMA]
    elif len(head) != 1:
        return None
    return Lambda(tuple(token.text.lower() for token in head), list(argument[arrow + 1 :]))


def _split_items(piece: Piece) -> list[Piece]:
    start = 1 if len(piece) > 1 and piece[0].text.upper() == "ARRAY" else 0
    opens = len(piece) > start and piece[start].token_type in (TokenType.L_BRACKET, TokenType.L_PAREN)
    if opens and sql_tokens.closing(piece, start) == len(piece) - 1:
        return sql_tokens.split_commas(piece[start + 1 : -1])
    return [piece]


def _name_key(name: str) -> str:
    key = name.lower()
    return key.replace("latest_", "execution_", 1) if key.startswith("latest_") else key  # an older spelling


def _is_name(token: Token) -> bool:
    """Return True for an unquoted word."""
    return token.token_type not in _TEXTUAL and token.text.replace("_", "a").isalnum() and not token.text[0].isdigit()
