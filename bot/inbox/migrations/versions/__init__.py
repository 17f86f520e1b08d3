"""The bot's own steps."""
