"""Macros and Jinja: expands the text of a file to SQL."""
