"""From the tokens of a query to the tree that Spark would read, and back where the dialect is another."""
