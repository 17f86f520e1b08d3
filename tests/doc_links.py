"""Links of the documentation that stand in code: there they begin at docs/."""

from __future__ import annotations

import re
from os.path import relpath

FROM_DOCS = re.compile(r"\]\(([a-z]+/[\w-]+\.md)")


def in_folder(text: str, folder: str) -> str:
    """The text as a page in a folder of docs/ has it: with links that are relative to that folder.

    >>> in_folder("see [rules](reference/bot.md#commands)", "guides")
    'see [rules](../reference/bot.md#commands)'
    """
    return FROM_DOCS.sub(lambda link: f"]({relpath(link[1], folder)}", text)
