"""OpenLineage events that report what ran, what it read and what it wrote."""
