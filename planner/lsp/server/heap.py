"""The garbage collector beside a large project: what lives as long as the server is left out of its collections."""

from __future__ import annotations

import gc


def settle() -> None:
    """Free what an earlier project left, and exclude everything that exists from later collections."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
