"""Audits, unit tests, the linter and table diffs: questions about models and rows, and their answers as data."""
