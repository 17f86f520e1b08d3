"""The targets of notices, in one table: each reads from the settings whether it is used."""

from collections.abc import Callable

from mergeplan.bot.notifications.notifications import Notifications, Target
from mergeplan.bot.notifications.slack import slack_webhook
from mergeplan.bot.settings import Settings

TARGETS: tuple[Callable[[Settings], Target | None], ...] = (slack_webhook,)


def open_notifications(settings: Settings) -> Notifications:
    return Notifications([target for make_target in TARGETS if (target := make_target(settings)) is not None])
