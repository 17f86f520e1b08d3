"""The planner as a child process, and a warm Spark for it."""
