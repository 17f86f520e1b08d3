"""The project's YAML in the editor: the path of a place in it, and the schema of that place."""
