"""Parses bytes of project code into a message of Spark Connect, however deeply nested, or refuses them."""

import threading
from typing import Any

from mergeplan.planner.engine.spark.connect.admission import DEEPEST
from mergeplan.planner.engine.spark.process.libraries import LIB
from mergeplan.planner.parsing.sql.queried_tables import NotAdmitted


class Malformed(NotAdmitted):
    """Bytes that are no request at all."""


_lock = threading.Lock()  # how deep may be read is a setting of the whole process


def message_of(kind: Any, data: bytes) -> Any:
    """Return the message; raise NotAdmitted if bytes are none, nest too deeply, or hold an unknown field."""
    with _lock:
        try:
            message = kind.FromString(data)
        except LIB.undecodable:
            message = _parse_deep(kind, data)
    size = message.ByteSize()
    message.DiscardUnknownFields()
    if message.ByteSize() != size:
        raise NotAdmitted("The request holds a field that this version of pyspark does not know.")
    return message


def _parse_deep(kind: Any, data: bytes) -> Any:
    """Parse a message that nests deeper than the default limit; measure it first, because the parser recurs."""
    if depth_of(kind.DESCRIPTOR, data) > DEEPEST:
        raise NotAdmitted("The plan is nested too deeply.")
    if LIB.reader is None:
        raise Malformed("The request cannot be read.")
    LIB.reader.SetAllowOversizeProtos(True)
    try:
        return kind.FromString(data)
    except LIB.undecodable:
        raise Malformed("The request cannot be read.") from None
    finally:
        LIB.reader.SetAllowOversizeProtos(False)


def depth_of(kind: Any, data: bytes) -> int:
    """Return how deeply the messages nest, at most one more than admitted; raise NotAdmitted for undecodable bytes."""
    waiting, deepest = [(0, len(data), kind, 1)], 0
    while waiting:
        at, end, kind, depth = waiting.pop()
        deepest = max(deepest, depth)
        if depth > DEEPEST:
            break
        while at < end:
            key, at = _read_number(data, at, end)
            field, form = kind.fields_by_number.get(key >> 3), key & 7
            if form == 0:
                _, at = _read_number(data, at, end)
                continue
            size, at = _read_number(data, at, end) if form == 2 else ({1: 8, 5: 4}.get(form, end), at)
            if field is None or at + size > end:
                raise Malformed("The request cannot be read.")
            if form == 2 and field.message_type is not None:
                waiting.append((at, at + size, field.message_type, depth + 1))
            at += size
    return deepest


def _read_number(data: bytes, offset: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while offset < end and shift < 70:
        byte = data[offset]
        value |= (byte & 127) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 128:
            return value, offset
    raise Malformed("The request cannot be read.")
