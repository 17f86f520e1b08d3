"""CODEOWNERS: the patterns of a file, and who owns a path by it. Pure."""

import re
from collections.abc import Sequence
from functools import lru_cache

PLACES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")  # GitHub takes the first that is there
Owned = tuple[str, tuple[str, ...]]  # a pattern, and its owners without their @


def read_owners(text: str) -> tuple[Owned, ...]:
    r"""Return the patterns with their owners, in order; one without owners removes ownership.

    >>> read_owners("# all\n*  @ann\n/models/tax.sql @acme/finance  # theirs\n")
    (('*', ('ann',)), ('/models/tax.sql', ('acme/finance',)))
    """
    lines = (re.sub(r"(?:^|\s)#.*$", "", line).strip() for line in text.splitlines())
    rules = (re.split(r"(?<!\\)\s+", line) for line in lines if line)
    return tuple((pattern, tuple(owner.removeprefix("@").lower() for owner in owners)) for pattern, *owners in rules)


def owners_of(path: str, owner_rules: Sequence[Owned]) -> tuple[str, ...]:
    """Return the owners of a path of the repository, by the last pattern that matches.

    >>> owners_of("models/tax.sql", (("*", ("ann",)), ("models/", ("acme/data",)), ("*.py", ("bob",))))
    ('acme/data',)
    """
    return next((owners for pattern, owners in reversed(owner_rules) if _compile_pattern(pattern).match(path)), ())


@lru_cache(maxsize=1_000)
def _compile_pattern(text: str) -> re.Pattern[str]:
    """Compile a gitignore pattern without `!` and `[...]`, which GitHub does not accept in this file."""
    text = text.replace("\\ ", " ")
    rooted, folder = "/" in text.rstrip("/"), text.endswith("/")
    parts = re.split(r"(\*\*/|/\*\*$|\*\*|\*|\?)", text.strip("/"))
    made = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    body = "".join(made.get(part, re.escape(part)) for part in parts)
    # `docs/*` owns what lies directly in docs, every other pattern also what lies below.
    below = "/.*" if folder else "" if text.endswith("/*") else "(?:/.*)?"
    return re.compile(f"{'' if rooted else '(?:.*/)?'}{body}{below}\\Z", re.DOTALL)
