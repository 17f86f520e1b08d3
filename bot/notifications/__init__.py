"""Notices about prod for people who do not look at GitHub: a target is a file, and `targets` registers it."""
