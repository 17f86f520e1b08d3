"""Compare the rows of two tables."""
