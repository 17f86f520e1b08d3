"""Which files of a project its Python code may read."""
