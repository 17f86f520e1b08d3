"""The interface to Spark, and its implementation."""
