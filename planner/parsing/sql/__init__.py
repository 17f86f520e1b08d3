"""SQL and YAML as text: tokens, names, dates, and what SQL of a project may not do."""
