"""The second witness: what the rules say of a plan's models, as claims that Spark's own analyzer can check."""
