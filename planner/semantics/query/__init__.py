"""The meaning of a query, clause by clause."""
