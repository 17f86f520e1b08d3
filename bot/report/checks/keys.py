"""The key of a check on GitHub: it names the pull request, the check and the project. Pure."""

import re

from mergeplan.bot.projects import label_of, repository_of

KEY = re.compile(r"mergeplan:([1-9]\d{0,9}):[a-z]+((?:~[A-Za-z0-9._-]+)*)")  # as `check_key` makes it


def check_key(project: str, number: int, name: str) -> str:
    """Return the key that distinguishes our check of a pull request and project on its commit.

    >>> check_key("ann/shop~ads", 7, "mergeplan / plan")
    'mergeplan:7:plan~ads'
    """
    return f"mergeplan:{number}:{name.rpartition(' ')[2]}{project.removeprefix(repository_of(project))}"


def pull_of_key(key: str) -> tuple[int, str]:
    """Return the pull request that such a key names, and its project's label; (0, '') for another text.

    >>> pull_of_key("mergeplan:7:plan~ads"), pull_of_key("another's")
    ((7, 'ads'), (0, ''))
    """
    match = KEY.fullmatch(key)
    return (int(match[1]), label_of(match[2])) if match else (0, "")
