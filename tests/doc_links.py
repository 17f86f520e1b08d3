"""Links of the documentation that stand in code: there they begin at docs/."""

from __future__ import annotations

import re

FROM_DOCS = re.compile(r"\]\((?=[a-z]+/[\w-]+\.md)")


def in_folder(text: str) -> str:
    """The text as a page in a folder of docs/ has it: its links lead out of that folder first.

    >>> in_folder("see [rules](reference/bot.md#commands)")
    'see [rules](../reference/bot.md#commands)'
    """
    return FROM_DOCS.sub("](../", text)
