"""Frozen objects of which some fields are known, and the others are read when one of them is first needed."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar, cast

T = TypeVar("T")


def defer(kind: type[T], facts: Mapping[str, Any], read: Callable[[], T]) -> T:
    """Return an object of a frozen class with these fields; `read` returns the whole one, which must have them too."""
    deferred: Any = object.__new__(_make_class(cast(Any, kind)))
    deferred.__dict__.update(facts, _read=read)
    return cast(T, deferred)


def is_deferred(value: object) -> bool:
    return "_read" in value.__dict__


class _Unread:
    """A field that is not known yet; a value in the object's own dictionary hides it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, deferred: Any, kind: type) -> Any:
        return getattr(_complete(deferred), self._name)


def _complete(deferred: Any) -> Any:
    """Read the other fields; the object is an ordinary one from then on."""
    if (read := deferred.__dict__.get("_read")) is not None:  # else another thread has read them
        whole = read()
        for name, value in whole.__dict__.items():
            deferred.__dict__.setdefault(name, value)
        object.__setattr__(deferred, "__class__", whole.__class__)
        deferred.__dict__.pop("_read", None)
    return deferred


@cache
def _make_class(kind: Any) -> Any:
    """Return a subclass whose objects read themselves before anything looks at them as a whole."""
    body: dict[str, Any] = {field.name: _Unread(field.name) for field in fields(kind)}
    body["__eq__"] = lambda one, other: one is other or _complete(one) == other
    body["__hash__"] = lambda one: hash(_complete(one))
    body["__repr__"] = lambda one: repr(_complete(one))
    body["__reduce_ex__"] = lambda one, protocol: _complete(one).__reduce_ex__(protocol)
    return type(kind.__name__, (kind,), body)
