"""A plan checked by the Spark of a workspace."""
