"""Convert a dbt project into files of mergeplan: each node becomes a model, each test an audit below it. Pure."""
