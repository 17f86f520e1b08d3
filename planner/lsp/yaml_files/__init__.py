"""The project's YAML in the editor: the path of a place in it, and the schema of that place.

It stays beside YAML servers: these know the schema, and not the project's models, tables and columns; and an editor
without such a server is promised both (docs/guides/editor.md). 100 of its 580 lines follow a schema; the others are the
schemas that `mergeplan schema` prints, the place in the text, names of the project and renames in unit tests.
"""
