"""The files of a project that its Python code may read."""
