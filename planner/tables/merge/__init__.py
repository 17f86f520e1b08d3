"""Merges of a batch with its table: one SELECT of all rows, to which the table is then pointed."""
