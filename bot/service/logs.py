"""Logs are events with keys, one JSON object a line on standard error; no secret gets through."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from mergeplan.bot.settings import Settings, redact_secrets


def start_logging(settings: Settings) -> None:
    """Configure logging: each line is JSON with its time, and no text contains a secret of the settings."""
    secrets = settings.secrets()

    def without_secrets(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        return {
            key: redact_secrets(value, secrets) if isinstance(value, str) else value for key, value in event.items()
        }

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            without_secrets,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
