"""What an agent may ask of a project: tools that read, and write nothing."""
