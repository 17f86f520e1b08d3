"""The forge that the settings name."""

from collections.abc import Callable

from mergeplan.bot.forge.port import Forge
from mergeplan.bot.github.gateway import GitHub
from mergeplan.bot.records import Repository
from mergeplan.bot.settings import Settings


def open_forge(settings: Settings, find_repository: Callable[[str], Repository] = Repository) -> Forge:
    """Return the forge; it is not called yet."""
    return GitHub(settings, find_repository)
