"""The project's YAML in the editor: the path of a place in it, and the schema of that place.

It stays beside YAML servers: these know the schema, and not the project's models, tables and columns; and an editor
without such a server is promised both (docs/guides/editor.md).
"""
