"""The planner's own steps."""
