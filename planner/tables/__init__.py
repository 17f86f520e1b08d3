"""Rows of tables: partitions, batch ids, merges, and models that read their own table."""
