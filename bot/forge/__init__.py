"""The port to a forge: what the bot asks of GitHub, in the bot's own terms."""
