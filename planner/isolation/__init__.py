"""What keeps a project's own code apart by the operating system: no file, process, signal or address but its own."""
