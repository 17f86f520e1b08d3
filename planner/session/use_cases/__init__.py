"""The use cases of a session, one file each."""
