"""Spark's own analyzer asked about what a plan keeps."""
