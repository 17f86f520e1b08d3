"""A dbt project: compiled by its own dbt, its questions answered, and read as a folder of ours."""
