"""A pull request: what is done next, and doing it; its commands."""
