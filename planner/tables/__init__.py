"""How rows lie in tables: partitions, batch ids, merges, and models that read their own table."""
