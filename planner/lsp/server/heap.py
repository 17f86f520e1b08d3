"""The garbage collector beside a large project: what lives as long as the server is left out of its collections."""

from __future__ import annotations

import gc


def settle() -> None:
    """Let go of what an earlier project left, and keep all that is there out of later collections."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
