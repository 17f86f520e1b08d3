"""A dbt project: compiled in a child by the project's own dbt, and read as data."""
