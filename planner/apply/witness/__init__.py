"""Spark's own analyzer as a check of what a plan keeps."""
