"""The bot's own tables, step by step."""
