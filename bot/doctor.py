"""doctor with the bot's finding: whether GitHub lets it in."""

from collections.abc import Iterator

from mergeplan.bot.forge.failures import ForgeFailed
from mergeplan.bot.service.forges import open_forge
from mergeplan.bot.settings import check_for_github, load_settings
from mergeplan.planner.cli.verbs.doctor import doctor_command
from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.session.use_cases.doctor import Finding


def check_github() -> Iterator[Finding]:
    """Yield the bot's login on GitHub; do not call GitHub without credentials."""
    try:
        settings = load_settings()
        if not settings.is_app and not settings.github_token.get_secret_value():
            yield Finding("github", None, "no login: MERGEPLAN_GITHUB_APP_ID or MERGEPLAN_GITHUB_TOKEN is for the bot")
            return
        # without a login, so that GitHub itself says it
        login_settings = check_for_github(settings).model_copy(update={"bot_login": ""})
        login = open_forge(login_settings).login()
        yield Finding("github", True, f"logged in as {login} by {'an App' if settings.is_app else 'a token'}")
    except (MergeplanError, ForgeFailed) as error:
        yield Finding("github", False, " ".join(str(error).split()))
    except Exception as error:  # of the library that reads the key: its text may hold a part of it
        yield Finding(
            "github", False, f"the login cannot be used ({type(error).__name__}): is the key a whole PEM file?"
        )


doctor = doctor_command(check_github)
