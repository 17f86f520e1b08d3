"""schema: as the planner's, with what the bot knows of `cicd_bot`."""

from mergeplan.bot.rules import WITHOUT_EFFECT, BotConfig
from mergeplan.planner.cli.verbs.schema import schema_command
from mergeplan.planner.contract.config_schema import config_schema

schema = schema_command(lambda: config_schema(BotConfig, WITHOUT_EFFECT))
