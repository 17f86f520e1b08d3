"""Environment variables as a config.py sees them: references to values that stay with the planner.

A reference is a text with a mark in it, so that texts can be made of it. Code that needs its content, such as a
comparison, gets it if it is known: the default of a variable that is not set, and the value of one that the operator
lets config.py see. Otherwise the file is undecided.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

VARIABLE = "MERGEPLAN_CONFIG_VARIABLES"  # names of the variables whose values config.py may see, with commas between
START, END = "\ue010", "\ue011"
MARK = re.compile(f"{START}(\\d+):(\\w+){END}")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
Scalar = str | int | float | bool | None
FILTERS: Mapping[str, Callable[[Any], Scalar]] = {
    "int": int, "float": float, "lower": str.lower, "upper": str.upper, "trim": str.strip,
}  # fmt: skip


class Undecided(BaseException):
    """The content of a config.py depends on an unknown value; no `except Exception` of the file hides it."""

    is_sentence = True

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line  # of config.py, where no statement that runs has it


@dataclass(frozen=True)
class Variable:
    """A use of an environment variable, and the functions that its value passes through."""

    name: str
    default: Scalar = None
    required: bool = False
    filters: tuple[str, ...] = ()
    why: str = ""  # a sentence: nothing is known of it, whatever it is made of


@dataclass
class References:
    """The variables that a file has read so far, and the known ones of their values."""

    filled: frozenset[str] = frozenset()  # names of variables that are set to a value that is not known here
    values: Mapping[str, str] = field(default_factory=dict)  # of those whose values may be seen, and of empty ones
    variables: list[Variable] = field(default_factory=list)
    refusal: Undecided | None = None  # the first one: none is forgotten when the file catches it

    def is_set(self, name: str) -> bool:
        return name in self.filled or name in self.values

    def refuse(self, message: str, line: int = 0) -> NoReturn:
        """Raise Undecided; the file is refused even if it catches the error."""
        self.refusal = self.refusal or Undecided(message, line)
        raise self.refusal

    def refer(self, variable: Variable) -> Text:
        if variable not in self.variables:
            self.variables.append(variable)
        return Text(f"{START}{self.variables.index(variable)}:{variable.name}{END}", self)

    def track(self, value: Any) -> Any:
        """Return the value; a text with marks in it as a Text."""
        return Text(value, self) if type(value) is str and START in value else value

    def unknown(self, variable: Variable) -> str:
        """Return why a variable's value is not known here; '' if it is."""
        name = variable.name
        stays = (
            f"The value of the environment variable `{name}` decides the configuration here, and it stays with the "
            f"planner. The operator can let config.py see it: {VARIABLE}={name}"
        )
        return variable.why or (stays if name in self.filled else "")

    def refer_unknown(self, why: str) -> Text:
        return self.refer(Variable("unknown", why=why))

    def content(self, variable: Variable) -> Scalar:
        """Return the value of a variable if it is known; raise Undecided otherwise."""
        name = variable.name
        if reason := self.unknown(variable):
            self.refuse(reason)
        if name not in self.values and variable.required:
            self.refuse(f"The environment variable `{name}` is not set.")
        value: Scalar = self.values.get(name, variable.default)
        for function in variable.filters:
            value = FILTERS[function](value)
        return value

    def is_filled(self, variable: Variable) -> bool:
        """Return True if a variable's value is not the empty text; a reference is tested without its value."""
        filled = variable.name in self.filled and not variable.why and "trim" not in variable.filters
        return filled or bool(self.content(variable))


class Text(str):
    references: References

    def __new__(cls, raw: str, references: References) -> Text:
        text = super().__new__(cls, raw)
        text.references = references
        return text

    @property
    def raw(self) -> str:
        return str.__str__(self)

    @property
    def parts(self) -> list[str | Variable]:
        """Texts and variables, in turn; a broken part of a mark is a text."""
        texts, parts = MARK.split(self.raw), list[str | Variable]()
        for index in range(0, len(texts), 3):
            parts += [texts[index]] if texts[index] else []
            parts += [self.references.variables[int(texts[index + 1])]] if index + 1 < len(texts) else []
        return parts

    @property
    def variable(self) -> Variable | None:
        """The variable, if the text is nothing else."""
        match self.parts:
            case [Variable() as variable]:
                return variable
        return None

    def filtered(self, function: str) -> Text | None:
        """Return the text after one of FILTERS; None if that is not known."""
        variable = self.variable
        if variable is None or variable.why:
            return None
        return self.references.refer(replace(variable, filters=(*variable.filters, function)))

    def content(self) -> Any:
        """Return the text that Python would have; raise Undecided if it is not known."""
        if (variable := self.variable) is not None:
            return self.references.content(variable)
        parts = (self.references.content(part) if isinstance(part, Variable) else part for part in self.parts)
        return "".join(str(part) for part in parts)

    def __str__(self) -> str:
        return self

    def __repr__(self) -> str:
        return f"<{START}{MARK.sub(lambda mark: mark[2], self.raw)}>"  # to be printed: a mark that is broken is refused

    def __format__(self, form: str) -> str:
        return format(self.content(), form) if form else self

    def __add__(self, other: Any) -> Any:
        return (
            self.references.track(self.raw + str.__str__(other)) if isinstance(other, str) else self.content() + other
        )

    def __radd__(self, other: Any) -> Any:
        return (
            self.references.track(str.__str__(other) + self.raw) if isinstance(other, str) else other + self.content()
        )

    def __bool__(self) -> bool:
        parts = self.parts
        if any(isinstance(part, str) for part in parts):
            return True
        return any(self.references.is_filled(part) for part in parts if isinstance(part, Variable))

    def __copy__(self) -> Text:
        return self

    def __deepcopy__(self, memo: Any) -> Text:
        return self

    def lower(self) -> Any:
        text = self.filtered("lower")
        return _derive_text(self, "lower") if text is None else text

    def upper(self) -> Any:
        text = self.filtered("upper")
        return _derive_text(self, "upper") if text is None else text

    def strip(self, *characters: Any) -> Any:
        text = None if characters else self.filtered("trim")
        return _derive_text(self, "strip", *characters) if text is None else text


class Number:
    """The number that `int` or `float` returns for a reference."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def content(self) -> Any:
        """Return the number that Python would have; raise Undecided if it is not known."""
        return self.text.content()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return repr(self.text)

    def __format__(self, form: str) -> str:
        return format(self.text, form)


def plain_value(value: Any) -> Any:
    """Return the value that Python would have instead of a reference; raise Undecided if it is not known."""
    return value.content() if isinstance(value, Text | Number) else value


def why_unknown(value: Any) -> str:
    """Return why the value of a reference is not known here; '' if it is."""
    if not isinstance(value, Text | Number):
        return ""
    text = value.text if isinstance(value, Number) else value
    variables = [part for part in text.parts if isinstance(part, Variable)]
    return next(filter(None, map(text.references.unknown, variables)), "")


def is_within(left: Any, right: Any) -> bool:
    """Return `left in right`, as it would be without references."""
    return (plain_value(left) if type(right) is str else left) in right


def is_same(left: Any, right: Any) -> bool:
    """Return `left is right`, as it would be without references."""
    for value in (left, right):
        if left is not right and hasattr(type(value), "refuse_test"):
            value.refuse_test()
    one, two = (
        value.content() if isinstance(value, Text) and (v := value.variable) and not _is_text(value, v) else value
        for value in (left, right)
    )
    return one is two


def _is_text(text: Text, variable: Variable) -> bool:
    """Return True for a text that is one whatever its value."""
    return variable.required or text.references.is_set(variable.name)


def _derive_text(text: Text, name: str, *args: Any, **keywords: Any) -> Any:
    """Return the text that a method makes of another one; an unknown one for an unknown one."""
    if reason := why_unknown(text):
        return text.references.refer_unknown(reason)
    return getattr(text.content(), name)(*map(plain_value, args), **keywords)


def _text_method(name: str) -> Callable[..., Any]:
    def method(self: Text, *args: Any, **keywords: Any) -> Any:
        return _derive_text(self, name, *args, **keywords)

    return method


def _content_method(name: str) -> Callable[..., Any]:
    def method(self: Text | Number, *args: Any, **keywords: Any) -> Any:
        return getattr(self.content(), name)(
            *map(plain_value, args), **{key: plain_value(value) for key, value in keywords.items()}
        )

    method.__name__ = name
    return method


_MAKING = """replace removeprefix removesuffix title capitalize casefold swapcase lstrip rstrip zfill ljust rjust center
    expandtabs translate __getitem__ __mul__ __rmul__ __mod__""".split()
_COMPARED = "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __int__ __float__ __mul__ __rmul__ __mod__ __rmod__"
_TEXTS = {*_COMPARED.split(), "__len__", "__iter__", "__getitem__", "__contains__"}
_TEXTS |= {name for name in dir(str) if name[0] != "_"} - {"lower", "upper", "strip"}
_NUMBERS = {name for kind in (int, float) for name in dir(kind) if callable(getattr(kind, name))} - {
    *dir(object), "__new__", "__getnewargs__", "__getformat__",
} | {*_COMPARED.split()}  # fmt: skip
for _kind, _names in ((Text, _TEXTS), (Number, _NUMBERS)):
    for _method in _names:
        setattr(
            _kind, _method, _text_method(_method) if _kind is Text and _method in _MAKING else _content_method(_method)
        )
