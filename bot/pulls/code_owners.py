"""The code owners of a project's files, by CODEOWNERS as a commit has it."""

from collections.abc import Iterable

from mergeplan.bot.context import BotContext
from mergeplan.bot.git.checkout import Checkout
from mergeplan.bot.policy.codeowners import PLACES


def read_code_owners(
    context: BotContext, checkout: Checkout, commit: str, files: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    """Return the owners of files of the project, by path in its folder; raise ProjectError."""
    texts = ((path, checkout.read(commit, path)) for path in PLACES)
    path, text = next(((path, text) for path, text in texts if text is not None), ("", ""))
    prefix = "" if checkout.project in ("", ".") else f"{checkout.project.strip('/')}/"
    paths = {file: f"{prefix}{file}" for file in files}
    owners = context.reader.owners(path, text, sorted(paths.values())) if path else {}
    return {file: owners[inside] for file, inside in paths.items() if inside in owners}
