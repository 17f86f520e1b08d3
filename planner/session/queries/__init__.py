"""Rules of the linter that are queries over the catalog, and the process in which they run."""
