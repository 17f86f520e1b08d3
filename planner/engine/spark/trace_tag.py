"""The trace that this process is a step of: Spark's jobs carry it, so that one leads to the other."""

import re
from collections.abc import Mapping

TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


def trace_id(environ: Mapping[str, str]) -> str:
    """Return the trace id in W3C's TRACEPARENT; '' if it is missing or malformed."""
    match = TRACEPARENT.fullmatch(environ.get("TRACEPARENT", ""))
    return match[1] if match else ""
