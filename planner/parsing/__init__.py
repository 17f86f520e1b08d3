"""Read a project: text and YAML become models, audits, unit tests and a configuration."""
