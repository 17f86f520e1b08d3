"""A project's own Python: what it reaches, and the child process in which alone it runs."""
