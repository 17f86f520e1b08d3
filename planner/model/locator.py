"""A place in a model's file that is searched when it is shown."""

from dataclasses import dataclass, field
from functools import cached_property

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.errors import Place


@dataclass(frozen=True)
class Locator:
    """An identifier in a model's query or else its block, not in comments or strings; else the block's own place."""

    block: Place
    text: str = field(repr=False)
    dialect: str
    identifier: str
    in_block: bool = False  # it is looked for in the block first

    @cached_property
    def place(self) -> Place:
        """Its first occurrence."""
        tokens = self._tokenize_text()
        identifier_parts = [part for piece in self.identifier.lower().split(".") for part in (piece, ".")][:-1]
        texts = [token.text.lower() for token in tokens]
        matches = [
            index
            for index, token in enumerate(tokens)
            if token.token_type is not TokenType.STRING
            and (
                texts[index : index + len(identifier_parts)] == identifier_parts
                or texts[index] == self.identifier.lower()
            )
        ]
        query = next((i for i, token in enumerate(tokens) if token.token_type is TokenType.SEMICOLON), 0)
        first = matches[0] if matches else None
        best = next((index for index in matches if index > query and not self.in_block), first)
        if best is None:
            return self.block
        offset = tokens[best].start
        preceding_text = self.text[:offset]
        return Place(self.block.path, preceding_text.count("\n") + 1, offset - preceding_text.rfind("\n"))

    def __str__(self) -> str:
        return str(self.place)

    def _tokenize_text(self) -> list[Token]:
        try:
            return list(Dialect.get_or_raise(self.dialect).tokenize(self.text)) if self.text else []
        except TokenError:
            return []
