"""The project's YAML in the editor: where a place stands in it, and what its schema says of that place."""
