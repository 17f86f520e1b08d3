"""A SQLMesh project's `config.py` as data: it is read by its syntax tree and never run."""
