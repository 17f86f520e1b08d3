"""The names of pages: a model's own name where it is safe in a path and an address, else with a digest."""

import re

from mergeplan.planner.fingerprint import digest

_SAFE = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,150}")


def page_name(model: str) -> str:
    """Return the file of a model's page, which is its id within a single file.

    >>> page_name("shop.orders")
    'shop.orders'
    """
    if _SAFE.fullmatch(model) and not model.endswith(".") and model != "index":
        return model
    return f"{re.sub('[^a-z0-9_]+', '_', model.lower())[:100].strip('_')}-{digest('page', model)[:10]}"
