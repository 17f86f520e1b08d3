"""A dbt project as files of ours: each node becomes the text of a model, each test an audit below it. Pure."""
