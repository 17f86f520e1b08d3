"""The tools of an agent over a project: those that read, and those that start jobs."""
