"""Custom materializations, read as the kind that does the same.

The class is read and not run: a run shows the write of one branch, and here every branch is judged. A recorder was
written that takes both ways of every test that only a run decides: it has about 900 lines in place of 1,000. It also
needs a process, isolation and trust in the folder, and it accepts what it does not see; the reader refuses that.
"""
