"""Code with colours: spans with the classes of our own style."""

import re
from functools import cache, lru_cache

from markupsafe import Markup, escape
from pygments.lexer import Lexer, RegexLexer, words
from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, String, Text

from mergeplan.planner.wording import printable_text

CODE_MAX = 100_000  # characters; a longer text has no colours
CLASSES = (
    (Comment, "c"), (Number, "n"), (String, "s"), (Keyword, "k"), (Name.Builtin, "v"), (Name.Variable, "v"),
    (Name.Decorator, "v"),
)  # fmt: skip
# Words that are never columns: the lexer of Pygments colours each `day`, `name` and `status`, too.
KEYWORDS = tuple(
    """all and anti any as asc audit between by case cast cluster cross cube distinct distribute else end escape except
    exists false filter following for from full group grouping having ilike in inner intersect interval is join lateral
    left like limit minus model natural not null offset on or order outer over partition pivot preceding qualify range
    recursive right rlike rollup rows select semi sets some sort then true unbounded union unpivot using values when
    where window with within""".split()
)


class _ModelLexer(RegexLexer):
    """Spark SQL with macros, their variables and Jinja.

    What is not closed reaches to the end of the text, so that no text is searched twice.
    """

    flags = re.IGNORECASE | re.DOTALL
    tokens = {  # noqa: RUF012
        "root": [
            (r"[\s(),.=<>+*;]+", Text),
            (r"--[^\n]*", Comment),
            (r"/\*.*?(?:\*/|\Z)", Comment),
            (r"\{\{.*?(?:\}\}|\Z)|\{%.*?(?:%\}|\Z)|@\w+", Name.Variable),
            (r"'(?:[^'\\]|\\.)*(?:'|\Z)|\"(?:[^\"\\]|\\.)*(?:\"|\Z)", String),
            (r"`[^`]*(?:`|\Z)", Name),
            (r"(?<=\bkind )\w+", Keyword),
            (words(KEYWORDS, prefix=r"(?<![\w.])", suffix=r"\b"), Keyword),
            (r"\d[\w.]*", Number),
            (r"\w+", Name),
            (r".", Text),
        ]
    }


@lru_cache(maxsize=1_000)
def highlight_code(text: str, path: str = "") -> Markup:
    """Return SQL, or the Python of a file of Python, with everything escaped and coloured by what it is."""
    text = printable_text(text)
    if len(text) > CODE_MAX:
        return escape(text)
    lexer: Lexer = (PythonLexer if path.endswith(".py") else _ModelLexer)(stripnl=False, ensurenl=False)
    parts = ((_find_style(kind), escape(value)) for kind, value in lexer.get_tokens(text))
    return Markup("".join(f'<span class="{style}">{part}</span>' if style else part for style, part in parts))  # noqa: S704 - each part is escaped


@cache
def _find_style(kind: object) -> str:
    return next((name for ancestor, name in CLASSES if kind in ancestor), "")
