"""MODEL, AUDIT and unit test definitions: each property read, checked and given its default."""
