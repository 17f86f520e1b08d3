"""SQL and YAML as text: tokens, names, dates, and the restrictions for a project's SQL."""
