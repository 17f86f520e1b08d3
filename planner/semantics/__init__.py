"""What a query means: its text as algebra, so that two texts for the same rows are seen to be one.

`algebra` has values and blocks, `sources` where rows come from, `queries` reads SQL into them, `digests` names what
they mean.
"""
