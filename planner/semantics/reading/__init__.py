"""Convert the tokens of a query to the tree that Spark would read, and back for other dialects."""
