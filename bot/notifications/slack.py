"""An incoming webhook of Slack, or of a chat that takes its JSON."""

from dataclasses import dataclass

import requests

from mergeplan.bot.notifications.notifications import NotDelivered
from mergeplan.bot.report.notices import Notice
from mergeplan.bot.settings import Settings, redact_secrets

TIMEOUT_SECONDS = 10


@dataclass(frozen=True)
class SlackWebhook:
    """Posts each notice as one message; the address is a secret."""

    url: str
    secrets: tuple[str, ...] = ()

    def deliver(self, notice: Notice) -> None:
        message = {"text": escape_slack(redact_secrets(notice.text, self.secrets))}
        try:
            answer = requests.post(self.url, json=message, timeout=TIMEOUT_SECONDS, allow_redirects=False)
            answer.raise_for_status()
        except requests.RequestException as error:  # its text holds the address
            raise NotDelivered(type(error).__name__) from None


def slack_webhook(settings: Settings) -> SlackWebhook | None:
    url = settings.notify_url.get_secret_value()
    return SlackWebhook(url, settings.secrets()) if url else None


def escape_slack(text: str) -> str:
    """Return text without links and mentions, by Slack's rule: a model's name must not call a whole channel.

    >>> escape_slack("a <!channel> & b")
    'a &lt;!channel&gt; &amp; b'
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
