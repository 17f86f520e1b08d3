"""The definition of one table, as data, and its place in the graph of models."""
