"""A repository's prod: what is done next, and doing it."""
