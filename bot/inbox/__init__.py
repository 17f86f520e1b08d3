"""What the bot remembers, in the state database."""
