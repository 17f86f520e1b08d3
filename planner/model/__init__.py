"""What one table is made of, as data, and where it stands in the graph of models."""
