"""The files of a project that its Python code may read.

Without this, each data file would be an input of each model with Python: an edit of one file would recompute them all.
"""
