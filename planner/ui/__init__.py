"""Pages to read a project and to act on it in a browser: the catalog, lineage, environments, plans and checks."""
