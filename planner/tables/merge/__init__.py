"""Merges of a batch with what its table held before: one SELECT of all rows that the table will hold.

Parquet and ORC have no MERGE. The rows are computed aside, and then the table is pointed at them.
"""
