"""A call of a macro: its SQL becomes the declared arguments, and its result becomes SQL."""

import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from mergeplan.planner.python.evaluator import Evaluator


def call_macro(
    function: Callable[..., Any], evaluator: Evaluator, args: list[str], kwargs: Mapping[str, str]
) -> list[str]:
    """Return the result of a macro, for arguments as SQL texts, as SQL texts; raise TypeError for a wrong call."""
    expressions = [_parse_argument(text, evaluator.dialect) for text in args]
    named = {name: _parse_argument(text, evaluator.dialect) for name, text in kwargs.items()}
    signature = inspect.signature(function)
    bound = signature.bind(evaluator, *expressions, **named)
    try:
        hints = get_type_hints(function)
    except Exception:  # an annotation that cannot be evaluated is ignored
        hints = {}
    for name, value in list(bound.arguments.items())[1:]:
        kind, hint = signature.parameters[name].kind, hints.get(name)
        if kind is inspect.Parameter.VAR_POSITIONAL:
            bound.arguments[name] = tuple(coerce_argument(argument, hint, evaluator.dialect) for argument in value)
        elif kind is inspect.Parameter.VAR_KEYWORD:
            bound.arguments[name] = {
                key: coerce_argument(argument, hint, evaluator.dialect) for key, argument in value.items()
            }
        else:
            bound.arguments[name] = coerce_argument(value, hint, evaluator.dialect)
    return list(sql_of(function(*bound.args, **bound.kwargs), evaluator.dialect))


def sql_of(result: Any, dialect: str) -> Iterable[str]:
    """Yield a macro's result as SQL texts: an expression, a text, a number, None, or several of these."""
    if result is None:
        return
    if isinstance(result, exp.Expression):
        yield _render_sql(result, dialect)
    elif isinstance(result, str):
        yield result
    elif isinstance(result, bool | int | float | datetime | date):
        yield exp.convert(result).sql(dialect=dialect)
    elif isinstance(result, list | tuple | types.GeneratorType):
        for part in result:
            yield from sql_of(part, dialect)
    else:
        raise TypeError(f"a macro returns SQL or an expression, not {type(result).__name__}")


def _render_sql(value: exp.Expression, dialect: str) -> str:
    """Return the expression as SQL, with `@name` unchanged: Spark's own dialect writes that as `${name}`."""
    tree: Any = value.transform(lambda node: exp.var(f"@{node.name}") if isinstance(node, exp.Parameter) else node)
    return str(tree.sql(dialect=dialect))


def coerce_argument(value: Any, hint: Any, dialect: str) -> Any:
    """Return the argument converted to its annotation; unchanged if that is not possible, as in SQLMesh."""
    if hint is None or hint is Any or not isinstance(value, exp.Expression):
        return value
    try:
        return _coerce_value(value, hint, dialect)
    except (TypeError, ValueError, SqlglotError):
        return value


def _coerce_value(value: exp.Expression, hint: Any, dialect: str) -> Any:
    base, inner = get_origin(hint) or hint, get_args(hint)
    if base in (Union, types.UnionType):
        return _first_that_fits(value, inner, dialect)
    if base is Literal:
        plain = value.name if isinstance(value, exp.Literal | exp.Column | exp.Boolean) else value.sql(dialect)
        return (
            next(choice for choice in inner if str(choice) == plain)
            if plain in map(str, inner)
            else _refuse_value(value, hint)
        )
    if getattr(base, "__name__", "") == "SQL" and not isinstance(base, type):
        return _render_sql(value, dialect)
    if base in (list, tuple):
        return _coerce_items(value, base, inner, dialect)
    if isinstance(base, type) and issubclass(base, exp.Expression):
        return _coerce_expression(value, base, dialect)
    return _coerce_plain(value, base)


def _first_that_fits(value: exp.Expression, choices: tuple[Any, ...], dialect: str) -> Any:
    if any(isinstance(option, type) and isinstance(value, option) for option in choices):
        return value
    for choice in choices:
        if choice is type(None):
            if isinstance(value, exp.Null):
                return None
            continue
        try:
            return _coerce_value(value, choice, dialect)
        except (TypeError, ValueError, SqlglotError):
            continue
    return _refuse_value(value, choices)


def _coerce_items(value: exp.Expression, base: Any, inner: tuple[Any, ...], dialect: str) -> Any:
    parts = value.expressions if isinstance(value, exp.Array | exp.Tuple) else None
    if parts is None and isinstance(value, exp.Paren):
        parts = [value.this]
    if parts is None:
        return _refuse_value(value, base)
    if base is tuple and inner and inner[-1] is not Ellipsis:
        if len(inner) != len(parts):
            return _refuse_value(value, base)
        return tuple(_coerce_value(part, hint, dialect) for part, hint in zip(parts, inner, strict=True))
    hint = inner[0] if inner else None
    return base(_coerce_value(part, hint, dialect) if hint is not None else part for part in parts)


def _coerce_expression(value: exp.Expression, base: type[exp.Expression], dialect: str) -> Any:
    if isinstance(value, base):
        return value
    text = value.this if isinstance(value, exp.Literal) and value.is_string else value.sql(dialect=dialect)
    made = exp.to_table(text, dialect=dialect) if base is exp.Table else parse_one(text, dialect=dialect)
    if isinstance(made, base):
        return made
    if base is exp.Identifier and isinstance(made, exp.Column):
        return made.this
    return _refuse_value(value, base)


def _coerce_plain(value: exp.Expression, base: Any) -> Any:
    if isinstance(value, exp.Neg) and base in (int, float):
        return -_coerce_plain(value.this, base)
    if base is bool and isinstance(value, exp.Boolean):
        return bool(value.this)
    if base is str and isinstance(value, exp.Column) and not value.table:
        return value.name
    if isinstance(value, exp.Literal):
        if base in (int, float, str):
            return base(value.this)
        if base is datetime:
            moment = datetime.fromisoformat(value.this)
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        if base is date:
            return date.fromisoformat(value.this[:10])
    return _refuse_value(value, base)


def _refuse_value(value: exp.Expression, hint: Any) -> Any:
    raise TypeError(f"`{value.sql()}` is no {hint}")


def _parse_argument(text: str, dialect: str) -> Any:
    """Return one argument as an expression; it is parsed inside a call, so that lambdas and lists are understood."""
    try:
        tree: Any = parse_one(f"SELECT mergeplan_argument({text})", dialect=dialect)
        called = tree.selects[0]
        if isinstance(called, exp.Anonymous) and len(called.expressions) == 1:
            return called.expressions[0].pop()
    except SqlglotError:
        pass
    return parse_one(text, dialect=dialect)
