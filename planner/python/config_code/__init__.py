"""A SQLMesh project's `config.py`: run in a child with stand-ins of SQLMesh's classes, and read as data."""
