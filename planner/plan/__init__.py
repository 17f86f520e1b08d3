"""What changed, whom it affects, and which intervals of which tables must be computed. Pure functions over data."""
