"""Macros and Jinja: the text in a file becomes the SQL that it stands for."""
