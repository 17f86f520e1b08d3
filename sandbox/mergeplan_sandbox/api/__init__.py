"""GitHub's REST and GraphQL API, as the sandbox answers it."""
