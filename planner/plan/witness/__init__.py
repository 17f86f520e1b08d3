"""The second witness: the rules' statements about a plan's models, as claims that Spark's own analyzer can check."""
