"""schema: as the planner's, with what the bot knows of `cicd_bot`."""

from __future__ import annotations

from bot.rules import WITHOUT_EFFECT, CicdBot
from planner.cli.schema import schema_command
from planner.contract.config_schema import config_schema

schema = schema_command(lambda: config_schema(CicdBot, WITHOUT_EFFECT))
