"""The catalog of a project: its models as data, for pages, exports and programs. No file, Spark or database is read."""
