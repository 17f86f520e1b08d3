"""What a query means: queries as relational algebra, so that equivalent queries are recognised.

`algebra` defines values and blocks, `sources` where rows come from, `queries` translates SQL into them, and `digests`
computes digests of their meaning.
"""
