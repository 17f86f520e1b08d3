"""What is done, not read: each a job, a `mergeplan` of its own whose JSON lines are its journal."""
