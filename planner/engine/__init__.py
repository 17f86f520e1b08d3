"""What is asked of a Spark, and Spark itself."""
