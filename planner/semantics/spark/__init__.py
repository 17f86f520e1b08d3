"""Spark's own rules as data: functions, settings, defaults, and how it reads names and text."""
