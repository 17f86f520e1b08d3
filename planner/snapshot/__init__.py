"""A model at a fingerprint, what its rows mean, and an environment as a map from names to snapshots."""
