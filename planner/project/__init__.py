"""A folder as a project: its files read once, its seeds, its column lineage, and how a new project begins."""
