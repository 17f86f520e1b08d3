"""A batch brought together with what its table held before: one SELECT of all rows that the table is to hold.

Parquet and ORC know no MERGE. The rows are computed aside, and then the table is pointed at them.
"""
