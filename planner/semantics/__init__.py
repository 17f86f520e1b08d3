"""What a query means: its text as algebra, so that two texts for the same rows are seen to be one.

`terms` are values, `sources` and `blocks` are rows, `queries` reads SQL into them, `digests` names what they mean.
"""
