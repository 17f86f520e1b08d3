"""Expand macros and Jinja: the text of a file becomes SQL."""
