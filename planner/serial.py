"""Conversion of our frozen dataclasses to JSON and back, by their own type hints.

A value that equals its default is left out, and so is a field whose metadata says `json: False`. So the text of an old
value stays the same when a later version adds a field. The fields of an embedded part are written beside those of the
whole: the text does not tell which part a setting is in.
"""

import json
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import lru_cache, partial
from hashlib import sha256
from itertools import chain
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints
from weakref import WeakValueDictionary

Json = Any  # untyped, as json.loads returns it
T = TypeVar("T")
SCALARS = (str, int, float, bool)
_DECODED: WeakValueDictionary[tuple[type, str], Any] = WeakValueDictionary()
EMBEDDED = {"json": "embedded"}  # metadata of a field for a part, whose fields are written beside those of the whole


def is_embedded(field: Field[Any]) -> bool:
    return field.metadata.get("json") == "embedded"


def encode_json(value: object) -> Json:
    """Return the value as JSON data; raise TypeError for a type that has no such form.

    >>> from mergeplan.planner.intervals import Cron
    >>> encode_json(Cron("@daily"))
    {'text': '@daily'}
    """
    if value is None or type(value) in SCALARS:
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, SCALARS):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return _encode_fields(value)
    if isinstance(value, Mapping):
        return {str(key): encode_json(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return [encode_json(item) for item in sorted(value)]
    if isinstance(value, tuple | list):
        return [encode_json(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no JSON form")


def decode_json(kind: type[T], data: Json) -> T:
    """Return the value that `encode_json` made the data from; raise TypeError or ValueError for another kind."""
    result: T = _build_reader(cast(Any, kind))(data)
    return result


def encode_line(value: object) -> str:
    """Return the value as one line of JSON, as the state's database stores it."""
    return json.dumps(encode_json(value))


def decode_line(kind: type[T], text: str) -> T:
    """Return the frozen value of a text, decoded once: most models are the same in the files and the state."""
    text_digest = line_digest(text)
    value = find_decoded(kind, text_digest)
    if value is None:
        value = decode_json(kind, json.loads(text))
        share_decoded(kind, text_digest, value)
    return value


def line_digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:40]


def find_decoded(kind: type[T], text_digest: str) -> T | None:
    """Return the object of a text with this digest if there is one in this process."""
    return _DECODED.get((kind, text_digest))


def share_decoded(kind: type[T], text_digest: str, value: T) -> None:
    _DECODED[kind, text_digest] = value


def canonical_json(data: Json) -> str:
    """Return one text for equal data, whatever the order of its keys."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _encode_fields(record: Any) -> dict[str, Json]:
    data: dict[str, Json] = {}
    for row in fields(record):
        item = getattr(record, row.name)
        default = row.default_factory() if row.default_factory is not MISSING else row.default
        if row.metadata.get("json", True) and item != default:
            data |= _encode_fields(item) if is_embedded(row) else {row.name: encode_json(item)}
    return data


@lru_cache(maxsize=512)
def _build_reader(kind: Any) -> Callable[[Json], Any]:
    """Return the reader of one type; cached, because type hints are slow to resolve."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        (optional,) = (_build_reader(argument) for argument in arguments if argument is not type(None))
        return lambda data: None if data is None else optional(data)
    if origin is tuple:
        return _tuple_reader(arguments)
    if origin is frozenset:
        if arguments[0] in SCALARS:
            return partial(_read_scalars, frozenset, arguments[0])
        item = _build_reader(arguments[0])
        return lambda data: frozenset(item(element) for element in data)
    if origin is not None and issubclass(origin, Mapping):
        item = _build_reader(arguments[1])
        return lambda data: {key: item(element) for key, element in data.items()}
    if is_dataclass(kind):
        return _record_reader(kind)
    if kind is datetime:
        return datetime.fromisoformat
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if kind in SCALARS:
        return lambda data: _check_scalar(kind, data)
    raise TypeError(f"{kind} cannot be read from JSON")


def _tuple_reader(arguments: tuple[Any, ...]) -> Callable[[Json], Any]:
    if arguments[-1] is Ellipsis:
        if get_origin(arguments[0]) is tuple and get_args(arguments[0]) == (str, str):
            return _read_pairs
        if arguments[0] in SCALARS:
            return partial(_read_scalars, tuple, arguments[0])
        item = _build_reader(arguments[0])
        return lambda data: tuple([item(element) for element in data])
    items = [_build_reader(argument) for argument in arguments]
    return lambda data: tuple([item(element) for item, element in zip(items, data, strict=True)])


def _read_scalars(make: Callable[[Json], Any], kind: type, data: Json) -> Any:
    values = make(data)
    if not {*map(type, values)} <= {kind}:
        raise TypeError(f"{data!r} is not of {kind.__name__}")
    return values


def _read_pairs(data: Json) -> tuple[tuple[str, str], ...]:
    """Return pairs of texts, the most frequent values of a model, after checking all of them at once."""
    pairs = tuple(map(tuple, data))
    if not ({*map(len, pairs)} <= {2} and {*map(type, chain.from_iterable(pairs))} <= {str}):
        raise TypeError(f"{data!r} is not pairs of str")
    return pairs


def _record_reader(kind: Any) -> Callable[[Json], Any]:
    readers = _field_readers(kind)
    makers = {part: _build_maker(made) for _, _, part, made in readers.values() if part}
    make = _build_maker(kind)

    def read(data: Json) -> Any:
        values: dict[str, Any] = {}
        parts: dict[str, dict[str, Any]] = {}
        try:
            for name, item in data.items():
                scalar, reader, part, _ = readers[name]
                fields = parts.setdefault(part, {}) if part else values
                fields[name] = item if type(item) is scalar else reader(item)
        except KeyError:
            unknown = min(data.keys() - readers.keys())
            raise TypeError(f"{kind.__name__} has no {unknown}") from None
        for part, fields in parts.items():
            values[part] = makers[part](fields)
        return make(values)

    return read


def _field_readers(kind: Any, part: str = "") -> dict[str, tuple[Any, Callable[[Json], Any], str, Any]]:
    """Return name -> its scalar type if it has one, its reader, and the part that it is in, with its class."""
    hints = get_type_hints(kind)
    readers: dict[str, tuple[Any, Callable[[Json], Any], str, Any]] = {}
    for row in fields(kind):
        hint = hints[row.name]
        if is_embedded(row):
            readers |= _field_readers(hint, row.name)
        elif row.metadata.get("json", True):
            readers[row.name] = (hint if hint in SCALARS else None, _build_reader(hint), part, kind)
    return readers


def _build_maker(kind: Any) -> Callable[[dict[str, Any]], Any]:
    """Return a function that makes an object from its fields, without `__init__` for a class of nothing else."""
    has_rules = hasattr(kind, "__post_init__") or any(hasattr(vars(kind).get(f.name), "__set__") for f in fields(kind))
    if has_rules or hasattr(kind, "__slots__") or not all(field.init for field in fields(kind)):
        return lambda values: kind(**values)
    needed = {field.name for field in fields(kind) if field.default is field.default_factory is MISSING}
    defaults = {field.name: field.default for field in fields(kind) if field.default is not MISSING}
    factories = {f.name: f.default_factory for f in fields(kind) if f.default_factory is not MISSING}

    def make(values: dict[str, Any]) -> Any:
        if not needed <= values.keys():
            raise TypeError(f"{kind.__name__} lacks {min(needed - values.keys())}")
        made = object.__new__(kind)
        made.__dict__.update(defaults, **values)
        if factories:
            made.__dict__.update({name: factories[name]() for name in factories.keys() - values.keys()})
        return made

    return make


def _check_scalar(kind: type, data: Json) -> Json:
    if type(data) is not kind:
        raise TypeError(f"{data!r} is not {kind.__name__}")
    return data
