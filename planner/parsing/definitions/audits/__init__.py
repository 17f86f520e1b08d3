"""Audits as a project defines and calls them, and the built-in ones."""
