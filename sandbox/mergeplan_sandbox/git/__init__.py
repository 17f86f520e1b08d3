"""Git in the sandbox: repositories, pushes, diffs and its HTTP transport."""
