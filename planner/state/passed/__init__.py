"""What audits found, and audits and unit tests that passed, so that they do not run again."""
