"""Macros: expands the tokens of a file."""
