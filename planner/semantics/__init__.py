"""The meaning of a query: queries as relational algebra, so that equivalent queries are recognised.

`algebra` defines values and blocks, `sources` the origins of rows. `queries` translates SQL into them, and `digests`
computes digests of their meaning.
"""
