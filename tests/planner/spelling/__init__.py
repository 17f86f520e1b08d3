"""Queries written in every spelling, and what Spark's analysed plan makes of each."""
