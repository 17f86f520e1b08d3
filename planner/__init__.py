"""mergeplan's planner: from the files of a project to tables on Spark. It knows nothing of GitHub.

The folders are stages, in the order of `tests/test_layers.py`: a stage uses those before it, and none after it.
"""
