"""Functions that only Databricks has, in Spark's spelling: `iff` is `if`."""

from collections.abc import Iterator, Sequence

from sqlglot.tokenizer_core import Token, TokenType

WORDS = {"iff": "if", "getdate": "current_timestamp", "charindex": "locate", "timediff": "timestampdiff"}


def find_words(tokens: Sequence[Token]) -> Iterator[tuple[Token, str]]:
    """Yield the name of each call of a function of Databricks, with Spark's name of that function."""
    for previous, token, following in zip([None, *tokens], tokens, tokens[1:], strict=False):
        is_call = token.token_type is TokenType.VAR and following.token_type is TokenType.L_PAREN
        if is_call and token.text.lower() in WORDS and (previous is None or previous.token_type is not TokenType.DOT):
            yield token, WORDS[token.text.lower()]
