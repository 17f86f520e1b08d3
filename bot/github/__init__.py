"""GitHub: webhooks in, the calls that the bot makes, one connection an owner."""
