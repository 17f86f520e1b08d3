"""Jinja in a model's SQL: rendered in a sandbox that sees only variables and the project's macros.

A date is a mark in the rendered text, because it is known only when the model runs. Marks become `@start_ds` and the
like.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.limits import limit_resources
from mergeplan.planner.parsing.sql.macro_scope import DATES, MacroScope
from mergeplan.planner.parsing.sql.token_lists import make_token, tokens_of
from mergeplan.planner.parsing.sql.tokens import SourceText, Tokens
from mergeplan.planner.parsing.sql.user_macros import Variable

LONGEST = 1_000_000  # characters that a template may grow to
LONGEST_NUMBER = 10_000  # bits of a whole number that a template computes
SECONDS = 10.0  # of the processor's time, for one template
MEMORY = 256 << 20
LOOPS = 100_000  # numbers of all its ranges together
_MARK = re.compile(r"__mergeplan_(\w+?)__")
_AS_TEXT = {"date": "ds", "dt": "tstz", "dtntz": "ts"}  # dates inside quotes, as strings
_NUMBERS = ("epoch", "millis", "hour")
_TYPES = ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ", "DATETIME")


class _NotSql(Exception):
    """Something that a template must not do; the message says why."""


def _refuse_date(self: object, *_: object, **__: object) -> NoReturn:
    raise _NotSql(f"`{self._date}` is known only when the model runs: Jinja cannot compute with it.")  # type: ignore[attr-defined]


class _Date:
    """A date that is not known yet."""

    def __init__(self, name: str) -> None:
        self._date = name

    def __str__(self) -> str:
        return f"__mergeplan_{self._date}__"

    __hash__ = object.__hash__
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __len__ = __iter__ = _refuse_date
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __truediv__ = __mod__ = __neg__ = _refuse_date
    __int__ = __float__ = __getitem__ = __call__ = __getattr__ = __format__ = _refuse_date


@dataclass(frozen=True)
class Template:
    """A piece of Jinja: its text, the file, and the line on which it begins."""

    text: str
    path: str
    line: int

    def error(self, message: str, line: int = 1) -> ProjectError:
        is_dbt = message.startswith(("'ref' is", "'source' is", "'config' is"))
        hint = "That is dbt's: write the table's name, or open the dbt project itself." if is_dbt else ""
        return ProjectError(f"Jinja: {message}", place=Place(self.path, self.line + line - 1), hint=hint)


def render_template(template: Template, macros: tuple[tuple[str, str], ...], scope: MacroScope) -> str:
    """Return the rendered text of a template with the project's `macros`; raise ProjectError at its line."""

    def too_much(why: str) -> ProjectError:
        return template.error(f"rendering it {why}.")

    with limit_resources(too_much, SECONDS, MEMORY):
        return _render_text(template, macros, scope)


def _render_text(template: Template, macros: tuple[tuple[str, str], ...], scope: MacroScope) -> str:
    from jinja2 import TemplateError

    environment = _create_environment()
    context = _create_context(scope)
    members: dict[str, Any] = {}
    at = template
    try:
        for path, text in macros:
            at = Template(text, path, 1)
            module = environment.from_string(text, globals=members | context).make_module()
            members |= {name: member for name, member in vars(module).items() if not name.startswith("_")}
        at = template
        return _text_of(environment.from_string(template.text, globals=members | context).generate())
    except TemplateError as error:
        raise at.error(_error_sentence(error), getattr(error, "lineno", None) or _error_line(error)) from None
    except _NotSql as error:
        raise at.error(str(error), _error_line(error)) from None
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, SyntaxError) as error:
        raise at.error(_error_sentence(error), _error_line(error)) from None


def _text_of(pieces: Iterable[str]) -> str:
    out, length = [], 0
    for piece in pieces:
        out.append(piece)
        length += len(piece)
        if length > LONGEST or len(out) > LONGEST:
            raise _NotSql(f"the text is longer than {LONGEST} characters.")
    text = "".join(out)
    text.encode()  # UnicodeEncodeError, a ValueError, for half of a surrogate pair
    return text


def replace_date_marks(tokens: Tokens, source: SourceText) -> list[Token]:
    """Return the tokens of rendered SQL with every mark as its date; raise ProjectError for one inside a name."""
    out: list[Token] = []
    for token in tokens:
        marks = _MARK.findall(token.text)
        if not marks:
            out.append(token)
        elif token.token_type is TokenType.STRING:
            sql = _text_with_dates(token.text)
            if out and out[-1].text.upper() in _TYPES:
                sql = f"CAST({sql} AS {out.pop().text})"
            out += tokens_of(sql, source.dialect, token, token)
        elif _MARK.fullmatch(token.text):
            out.append(make_token(TokenType.VAR, f"@{marks[0]}", token, token))
        else:
            raise source.error(token, f"Jinja: `{{{{ {marks[0]} }}}}` is known only when the model runs, and cannot be "
                                      "part of a name.")  # fmt: skip
    return out


def _text_with_dates(text: str) -> str:
    parts = []
    for index, part in enumerate(_MARK.split(text)):
        if index % 2 == 0:
            parts += ["'" + part.replace("\\", "\\\\").replace("'", "''") + "'"] if part else []
            continue
        prefix, suffix = part.split("_")
        name = f"@{prefix}_{_AS_TEXT.get(suffix, suffix)}"
        parts.append(f"CAST({name} AS STRING)" if suffix in _NUMBERS else name)
    return parts[0] if len(parts) == 1 else f"CONCAT({', '.join(parts)})"


def _create_context(scope: MacroScope) -> dict[str, object]:
    def var(name: str, default: Variable = None) -> Variable:
        return scope.variables.get(name.lower(), default)

    def blueprint_var(name: str, default: Variable = None) -> Variable:
        tokens = scope.blueprint.get(name.lower())
        return default if tokens is None else tokens[0].text if len(tokens) == 1 else " ".join(t.text for t in tokens)

    dates = {name: _Date(name) for name in DATES}
    dates |= {name.replace("execution_", "latest_"): date for name, date in dates.items() if "execution" in name}
    facts = {"gateway": scope.gateway, "runtime_stage": scope.stage, "model_kind_name": scope.kind}
    return {
        **dates,
        **facts,
        "var": var,
        "blueprint_var": blueprint_var,
        "range": _create_range(),
        "this_model": "@this_model",
    }


def _create_range() -> Callable[..., range]:
    left = LOOPS

    def count_range(*bounds: int) -> range:
        nonlocal left
        numbers = range(*bounds)
        left -= len(numbers)
        if left < 0:
            raise _NotSql(f"its ranges have more than {LOOPS} numbers.")
        return numbers

    return count_range


@cache
def _create_environment() -> Any:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class SafeEnvironment(ImmutableSandboxedEnvironment):
        """A sandbox without files and Python, and with limits for numbers and strings."""

        intercepted_binops = frozenset({"*", "**", "%", "+"})

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            if any(isinstance(operand, _Date) for operand in (left, right)):
                _refuse_date(left if isinstance(left, _Date) else right)
            sized = [len(operand) for operand in (left, right) if isinstance(operand, str | list | tuple)]
            counts = [abs(operand) for operand in (left, right) if isinstance(operand, int)]
            grown = sum(sized) * max([1, *counts]) if operator == "*" else sum(sized)
            if grown > LONGEST:
                raise _NotSql(f"`{operator}` makes more than {LONGEST} characters.")
            bits = [operand.bit_length() for operand in counts]
            if operator == "**" and len(bits) == 2:
                bits = [bits[0] * counts[1]]
            if sum(bits) > LONGEST_NUMBER:
                raise _NotSql(f"`{operator}` makes a number of more than {LONGEST_NUMBER} bits.")
            return super().call_binop(context, operator, left, right)

        def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
            """Return True also for `append` of a template's own list: it adds one value, but `extend` may double it."""
            return (isinstance(obj, list) and attr == "append") or bool(super().is_safe_attribute(obj, attr, value))

    environment = SafeEnvironment(
        undefined=StrictUndefined, autoescape=False, extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"]
    )
    for name in ("lipsum", "cycler", "joiner"):
        environment.globals.pop(name)
    return environment


def _error_sentence(error: Exception) -> str:
    text = str(getattr(error, "message", None) or error).strip()
    return f"{text.rstrip('.')}."


def _error_line(error: BaseException) -> int:
    trace, line = error.__traceback__, 1
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
