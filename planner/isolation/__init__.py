"""Isolates project code by the operating system: it can access only its own files, processes, signals and addresses."""
