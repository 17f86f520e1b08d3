"""Custom materializations, read as the kind that does the same.

The class is read and not run: a run shows the write of one branch, and here every branch is judged. A recorder was
written: with both ways of every test that only a run decides, it has 900 lines in place of 1,000. It would also need a
process, isolation and trust in the folder, and what it does not see it accepts; what is not read here is refused.
"""
