"""The verbs that check models and rows: audits, unit tests, linter, formatter, table and data diff."""
