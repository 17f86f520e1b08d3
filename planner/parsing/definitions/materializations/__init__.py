"""Custom materializations, read as the kind that does the same.

The class is read and not run: a run shows the write of one branch, and here every branch is judged. A second write that
depends on the time or on a table would go unseen, and the model would get a kind that it is not of.
"""
